"""``python -m bayesgen`` is the command ``bayesgen``."""

from bayesgen.main_job import main

raise SystemExit(main())
