"""Programs that use a library with exported prompts, where memtune may not be installed; `running.py` starts them."""
