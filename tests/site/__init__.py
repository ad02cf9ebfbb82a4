"""The documentation as a site: `make site` (mkdocs.yml)."""
