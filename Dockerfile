# The page and the commands: `docker compose up`, or `docker run --rm -v ~/Music:/music:ro harmonium tag /music/song.mp3`.
FROM python:3.13-slim

RUN useradd --create-home harmonium && mkdir /data /music && chown harmonium /data

COPY pyproject.toml constraints.txt README.md LICENSE /source/
COPY recipes /source/recipes
COPY beetsplug /source/beetsplug
COPY harmonium /source/harmonium
RUN pip install --no-cache-dir --constraint /source/constraints.txt "/source[postgres]" && rm -r /source

USER harmonium
ENV HARMONIUM_LIBRARY=/data/library.db HARMONIUM_CACHE=/data/cache
VOLUME /data
EXPOSE 8040
HEALTHCHECK --start-period=60s CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8040/api/v1/health', timeout=9)"]
ENTRYPOINT ["harmonium"]
CMD ["serve", "/music", "--host", "0.0.0.0", "--no-browser"]
