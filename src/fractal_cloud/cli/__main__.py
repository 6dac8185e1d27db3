"""`python -m fractal_cloud.cli` is `fractal`."""

from fractal_cloud.cli import main

main()
