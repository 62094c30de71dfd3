"""Small made files of the shapes in which data are published."""

import json
from typing import Any

SERVER = [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}, {"ip": "m2", "gpus": ["gpu3"]}]


def philly_job(name: str, submitted: str, *attempts: tuple[str | None, str | None]) -> dict[str, Any]:
    told = [{"start_time": start, "end_time": end, "detail": SERVER} for start, end in attempts]
    return {"status": "Pass", "vc": "ee", "jobid": name, "attempts": told, "submitted_time": submitted, "user": "u"}


PHILLY = json.dumps(
    [
        philly_job("b", "2017-10-07 01:00:10", ("2017-10-07 01:01:00", "2017-10-07 01:02:30")),
        philly_job(
            "a",
            "2017-10-07 01:00:00",
            ("2017-10-07 01:01:00", "2017-10-07 01:01:10"),
            (None, "2017-10-07 01:01:20"),
            ("2017-10-07 02:00:00", "2017-10-07 03:00:00"),
        ),
        philly_job("running", "2017-10-07 01:00:05", ("2017-10-07 01:01:00", None)),
        philly_job("never", "2017-10-07 00:00:00"),
    ]
)
HELIOS = """\
job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
2,u,v,4,16,1,FAILED,2020-06-09 18:41:27,2020-06-09 18:41:27,2020-06-09 18:45:36,249,0
1,u,v,1,1,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:01,2020-06-10 04:55:09,36848,0
3,u,v,0,1,1,COMPLETED,2020-06-09 18:00:00,2020-06-09 18:41:01,2020-06-10 04:55:09,36848,0
"""
PODS = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
p1,88000,327680,8,1000,,Burstable,Succeeded,9437497,10769854,9437500
p2,4000,15258,1,220,V100M16|V100M32,BE,Running,9679175,9973826,9679175
p3,4000,15258,0,0,,LS,Succeeded,1,5,2
p4,4000,15258,1,1000,,LS,Pending,9679175,9973826,
"""
NODES = "sn,cpu_milli,memory_mib,gpu,model\nn1,32000,262144,0,\nn2,96000,393216,8,G2\n"
CHRONUS = """\
job_id,user,num_gpu,submit_time,iterations,model_name,duration,interval,expect_time_list,expect_value_list,best_effort,job_type
0,vc,4,100,6910,resnet101,211,8,282-564,10-5,0,soft
1,vc,1,90,8897,vgg16,31,6,88,10,0,strict
2,vc,0,80,8897,vgg16,31,6,88,10,0,strict
3,vc,1,70,8897,vgg16,31,6,70,10,1,best
"""
SIA = """\
gpu_type,local_bsz,placement,step_time,sync_time
rtx,8,1,0.4,0.0
rtx,16,1,0.8,0.0
rtx,8,2,0.5,0.1
rtx,8,11,0.6,0.1
dgx,8,1,0.1,0.0
"""
MATRIX = [[0.1, row, row, row, row] for row in (0.3, 0.66, 1, 1.25, 1.5, 1.75, 2, 2, 2)]
SYNERGY = f"""\
from models.model_stats import ModelStats
import numpy as np

class alexnet_1(ModelStats):
    def update_stats(self):
        self.mem = 62.5*2
        self.tput = np.array({MATRIX})
"""
SHOCKWAVE = "".join(
    f"ResNet-18 (batch size 32)\tpython3 main.py\timage\t--num_steps\t1\t{steps}\t2\t{mode}\t1\t-1.000000\t5433\t{at}\n"
    for steps, mode, at in ((600, "accordion", 4561), (700, "static", 4600))
)
