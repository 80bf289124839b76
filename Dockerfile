# udccp and its laboratory in a container:
#
#   docker build -t udccp .
#   docker run --rm udccp sim two-flows
#   docker run --rm -v "$PWD/results:/work/results" udccp lab run nor-2012
#
# The emulator and raw IP make namespaces and devices: add --privileged for them.
FROM rust:1.95.0-slim-trixie AS build
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev git && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN cp "$(scripts/pgo.sh program)" /usr/local/bin/udccp

FROM debian:trixie-slim
RUN apt-get update && apt-get install -y --no-install-recommends iproute2 && rm -rf /var/lib/apt/lists/*
COPY --from=build /usr/local/bin/udccp /usr/local/bin/udccp
WORKDIR /work
ENTRYPOINT ["udccp"]
CMD ["--help"]
