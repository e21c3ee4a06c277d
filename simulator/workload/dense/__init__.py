"""Dense models: what one sample costs, derived from the shape of the model alone."""

from simulator.workload.dense.dcnv2 import Dcnv2
from simulator.workload.dense.deep_fm import DeepFm
from simulator.workload.dense.dlrm import Dlrm
from simulator.workload.dense.fuxi import Fuxi
from simulator.workload.dense.hstu import Hstu
from simulator.workload.dense.mlp import Mlp
from simulator.workload.dense.model import DenseModel
from simulator.workload.dense.profile import Profile
from simulator.workload.dense.wide_and_deep import WideAndDeep

__all__ = ["Dcnv2", "DeepFm", "DenseModel", "Dlrm", "Fuxi", "Hstu", "Mlp", "Profile", "WideAndDeep"]
