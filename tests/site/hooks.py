"""MkDocs calls these functions (mkdocs.yml): the site's pages are those of tests/site/pages.py."""

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from tests.site.pages import from_code, prose


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for uri, text in {**prose(), **from_code()}.items():
        if (written := files.get_file_from_path(uri)) is not None:
            files.remove(written)
        files.append(File.generated(config, uri, content=text))
    script = Path(__file__).with_name("iframe-worker.js")
    files.append(File.generated(config, "iframe-worker.js", content=script.read_text("utf-8")))
    return files
