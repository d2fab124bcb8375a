"""Compose, run, track and show optimization experiments; `experiments.command` is the `memtune` command.

Rooms; each imports only from the lines below its own:
    commands                          the subcommands
    bench, diagnosis                  how good and how fast memtune is; why answers of a run are wrong, as a page
    starter, doctor                   files to begin with; what a run on this machine would stumble over
    attributing                       attributes many wrong answers, resumably
    experiment                        one experiment, from its configuration to its finished folder
    mlflow_tracking, reports, views   a run in MLflow; its report.html; single traces to look at
    data, display                     data sets; tables, charts, pages and the console
    runs                              a run on disk: configuration, folder and files
"""
