#!/usr/bin/env python3
"""Renders conda/recipe.yaml by rattler-build (PyPI: py-rattler-build), which finds what no recipe may have, and says what was made of it."""
import os
import sys

import rattler_build

RECIPE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "conda", "recipe.yaml")
try:
    rendered = rattler_build.Stage0Recipe.from_file(RECIPE).render()
except rattler_build.RattlerBuildError as error:
    sys.exit(f"conda/recipe.yaml: {error}")
for variant in rendered:
    print(f"conda/recipe.yaml: {variant.recipe.package.name} {variant.recipe.package.version}, rendered by rattler-build "
          f"{rattler_build.rattler_build_version()}; not built")
