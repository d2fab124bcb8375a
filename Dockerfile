# The demo without a key: docker build -t memtune . && docker run --rm memtune
# Nothing listens beyond the container's own loopback. Results: docker run --rm -v memtune:/home/memtune/data memtune
FROM python:3.12-slim

# The embedded models' runtime needs OpenMP, which this image lacks.
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends libgomp1 && rm -rf /var/lib/apt/lists/*
RUN useradd --create-home --uid 1000 memtune
WORKDIR /opt/memtune
COPY pyproject.toml README.md LICENSE ./
COPY memtune memtune
COPY tracing tracing
COPY attribution attribution
COPY optimizer optimizer
COPY experiments experiments
# It is this folder that is installed, so there is no version to pin.
# hadolint ignore=DL3013
RUN pip install --no-cache-dir '.[run]' && mkdir /home/memtune/data && chown memtune:memtune /home/memtune/data

USER 1000
WORKDIR /home/memtune
ENV MEMTUNE_HOME=/home/memtune/data
# In the image, so that a container needs no network.
RUN memtune model pull qwen2.5-coder-0.5b
ENTRYPOINT ["memtune"]
CMD ["run", "demo"]
