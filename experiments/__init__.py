"""Compose, run, track and show optimization experiments; `experiments.command` is the `memtune` command.

Subpackages; each imports only from the lines below its own:
    commands                          the subcommands
    api                               the Python API
    bench, diagnosis                  how good and how fast memtune is; why answers of a run are wrong, as a page
    annotating                        people's labels of wrong answers, on a page
    starter, doctor                   files to begin with; what a run on this machine would stumble over
    attributing                       attributes many wrong answers, resumably
    running                           one run, from its configuration to its finished folder
    mlflow_tracking                   a run in MLflow
    reports                           its report.html
    views                             single traces to look at
    display                           tables, charts, pages and the console
    runs                              a run on disk: configuration, folder and files
    data                              data sets
"""
