"""How anything is shown: a console that takes no data for markup, tables, charts and the templates of pages."""
