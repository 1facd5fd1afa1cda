"""What frameworks declare of the libraries under them, by METADATA of the wheels on PyPI; the rows say the same."""

from __future__ import annotations

from tests.compat.asking import judged, shown
from tests.every import every

# The release, the library, a version that its METADATA admits and one that it does not; read on 2026-11-23.
DECLARED = """
tensorflow==2.8.1 protobuf 4.21.6 3.8.0
tensorflow==2.8.2 protobuf 3.19.6 3.20.3
tensorflow==2.9.1 protobuf 3.19.6 4.21.6
tensorflow==2.11.1 protobuf 3.19.6 4.21.6
tensorflow==2.12.0 protobuf 4.25.3 4.21.5
tensorflow==2.16.1 protobuf 4.25.3 5.26.0
tensorflow==2.18.0 protobuf 5.29.3 6.30.0
tensorflow==2.12.0 keras 2.12.0 2.13.1
tensorflow==2.15.0 keras 2.15.0 3.0.0
tensorflow==2.16.1 keras 3.3.3 2.15.0
tensorflow==2.15.0 ml-dtypes 0.2.0 0.3.1
tensorflow==2.15.1 ml-dtypes 0.3.2 0.2.0
tensorflow==2.18.0 ml-dtypes 0.4.1 0.5.0
tensorflow==2.18.1 ml-dtypes 0.5.0 0.3.2
jaxlib==0.4.18 scipy 1.7.3 1.6.3
jaxlib==0.4.19 scipy 1.9.3 1.8.1
jaxlib==0.4.29 ml-dtypes 0.4.0 0.3.2
jaxlib==0.4.30 ml-dtypes 0.2.0 0.1.0
jaxlib==0.10.0 scipy 1.14.1 1.13.1
transformers==4.40.0 huggingface-hub 0.23.0 1.0.0
transformers==4.29.0 huggingface-hub 0.11.0 0.10.1
transformers==4.29.1 huggingface-hub 0.14.1 0.13.4
transformers==5.1.0 huggingface-hub 1.3.0 0.36.0
diffusers==0.36.0 huggingface-hub 1.0.0 2.0.0
scipy==1.11.1 numpy 1.21.6 1.20.3
scipy==1.13.0 numpy 2.2.6 2.3.0
scipy==1.18.0 numpy 2.5.0 1.26.4
onnxruntime-gpu==1.24.1 cuda 12.8 12.6
onnxruntime-gpu==1.26.0 cuda 12.9 12.6
"""


@every([line.split() for line in DECLARED.strip().splitlines()])
def test_both_sides_of_a_declared_bound_are_answered(release: str, library: str, admitted: str, refused: str) -> None:
    within, beyond = (judged(f"{release} {library}=={version}") for version in (admitted, refused))
    assert within.verdict == "compatible", shown(within)
    assert beyond.verdict == "incompatible", shown(beyond)
