# The controller's image. BASE brings Python 3.11 or newer as python3. BUILDER needs its venv too,
# and is the same Python at the same place; it leaves no trace.
ARG BASE=python:3.11-slim-bookworm
ARG BUILDER=${BASE}

FROM ${BUILDER} AS build
WORKDIR /source
COPY pyproject.toml hatch_build.py constraints.txt README.md LICENSE ./
COPY dlctl dlctl
# Pip stays outside of what it fills. It compiles, too: nothing can be written where this runs.
RUN python3 -m venv /pip \
    && python3 -m venv --without-pip /opt/dlctl \
    && /pip/bin/pip --python /opt/dlctl/bin/python install \
        --quiet --disable-pip-version-check --no-cache-dir --constraint constraints.txt .

FROM ${BASE}
LABEL org.opencontainers.image.title="dlctl" \
    org.opencontainers.image.version="0.1.0" \
    org.opencontainers.image.description="One Kubernetes operator for distributed deep-learning jobs" \
    org.opencontainers.image.source="https://github.com/dlctl/dlctl" \
    org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/dlctl /opt/dlctl
# The user has no entry in /etc/passwd, which is where a home would be looked for else.
ENV PATH=/opt/dlctl/bin:/usr/local/bin:/usr/bin:/bin HOME=/ PYTHONDONTWRITEBYTECODE=1
USER 65532:65532
ENTRYPOINT ["dlctl"]
CMD ["controller"]
