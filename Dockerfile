# The tests in a clean place: docker build -t nkic . && docker run --rm nkic
FROM python:3.12-slim
RUN apt-get update && apt-get install --yes --no-install-recommends git make procps \
    && rm -rf /var/lib/apt/lists/*
RUN useradd --create-home nkic
WORKDIR /home/nkic/nkic
COPY --chown=nkic . .
USER nkic
RUN make setup
CMD ["make", "test"]
