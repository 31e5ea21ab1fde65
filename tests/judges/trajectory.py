"""Says whether a file is a trajectory as the `atif` package understands it; prints what it understood."""
import json
import sys
from pathlib import Path

from atif import Trajectory

trajectory = Trajectory.model_validate(json.loads(Path(sys.argv[1]).read_text()))
print(json.dumps(trajectory.to_json_dict()))
