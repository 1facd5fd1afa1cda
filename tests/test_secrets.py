"""What looks like a secret, and every place of a report that may hold one."""

import types
from pathlib import Path
from time import process_time
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envcheck.cli.main import main
from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.tables.messages import SecretRow
from envcheck.model.checks import Report
from envcheck.model.snapshot import ObservedError, Snapshot, Variables
from envcheck.redact import mask_secrets, redact
from envcheck.redact.secrets import MASK, masked, masked_value
from envcheck.report.saved import read_report
from tests import thorough
from tests.every import cases, every
from tests.report.examples import report

S = "Zq9xW7vT3kLm"  # A secret without any shape of its own


@every(
    *("DB_PASS", "PASS", "DB_PWD", "MYSQL_PWD", "AWS_CREDS", "GIT_CRED", "GITHUB_PAT", "SESSION_COOKIE", "COOKIE"),
    *("GITLAB_SESSION", "SESSION_ID", "URL_SIGNATURE", "SIGNATURE", "HF_TOKEN", "githubToken", "api-key", "APIKEY"),
    *("WANDB_API_KEY", "SSH_PRIVATE_KEY", "KEY", "BASIC_AUTH", "AUTH", "SENTRY_DSN", "MYSECRETVALUE", "passphrase"),
    *("PGPASSWORD", "LOGIN_PASSWD", "SAS_SIG", "KAGGLE_KEY", "CREDENTIALS", "VAULT_PASSCODE", "X-Auth-Token"),
    *("SECRETS", "AccessKey", "myApiKey", "NGC_CLI_API_KEY", "ENCRYPTION_KEY", "PASSWORD_SALT"),
    *("KEY_BASE64", "key_b64", "keyBase64", "AUTH_HEADER", "PASS_2", "PAT_RO", "OTP_SEED", "JWT_RAW", "DBPASS"),
    *("PGPASS", "SMTP_PWD", "passwort", "DB_KENNWORT", "motdepasse", "MOT_DE_PASSE", "contraseña", "contrasena"),
    *("senha", "wachtwoord", "parola", "lösenord", "adgangskode", "hasło", "heslo", "şifre", "пароль", "密码"),
    *("パスワード", "비밀번호", "mdp", "jelszó", "salasana"),
)
def test_names_that_tell(name: str) -> None:
    assert masked_value(name, "x") == MASK
    assert S not in masked(f"export {name}={S}; done")


@every(
    *("PATH", "CUDA_PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "KEYBOARD", "PASSED", "PWD", "OLDPWD", "XAUTHORITY"),
    *("TOKENIZERS_PARALLELISM", "NCCL_IB_PKEY", "XLA_FLAGS", "CUDA_VISIBLE_DEVICES", "PATTERN", "COMPASS", "BYPASS"),
    *("MONKEY", "AUTHOR", "GIT_AUTHOR", "COMPAT", "PASSES", "SIGNAL", "DESKTOP_SESSION", "NVIDIA_DRIVER_CAPABILITIES"),
    *("TF_XLA_FLAGS", "CUDA_PATH_V12_4", "MAX_PATH", "SPAT", "DISPATCH_KEYSET", "TORCH_CUDA_ARCH_LIST"),
    *("PGPASSFILE", "HF_TOKEN_PATH", "SSH_KEY_FILE", "SECRETS_DIR", "AWS_WEB_IDENTITY_TOKEN_FILE", "pwd"),
)
def test_names_that_tell_nothing(name: str) -> None:
    assert masked_value(name, "/a/b") == "/a/b"
    assert masked(f"{name}=/a/b") == f"{name}=/a/b"


@every(
    f"https://x.example/blob?sv=2024&sig={S}%3D&se=1",
    f"https://b.s3.example/o?X-Amz-Credential={S}&X-Amz-Signature={S}&X-Amz-Security-Token={S}",
    f"GET /v1?key={S}&alt=json",
    f"X-Api-Key: {S}",
    f"-H 'api-key: {S}'",
    f'curl -H "Ocp-Apim-Subscription-Key: {S}"',
    f"Private-Token: {S}",
    f"Authorization: Digest username=a, response={S}",
    f"proxy-authorization: Basic {S}==",
    f"Cookie: a={S}; session={S}",
    f"{{'Authorization': 'Bearer {S}'}}",
    f"vllm serve --api-key {S} --port 1",
    f"prog --hf-token={S}",
    f"prog --registry-token={S} -x",
    f"prog --my-access-token '{S}'",
    f"prog --db-password {S}",
    f"curl -u ada:{S} https://x.example",
    f"curl --user 'ada:{S}' https://x.example",
    f"mysql -h db -u root -p{S} name",
    f"mysqldump -p{S}",
    f"sshpass -p {S} ssh node",
    f"docker login -u ada -p {S} r.example",
    f"redis-cli -h x -a {S}",
    f"-----BEGIN RSA PRIVATE KEY-----\n{S}\n{S}\n-----END RSA PRIVATE KEY-----",
    f"-----BEGIN OPENSSH PRIVATE KEY-----\\n{S}",
    f"postgres://ada:{S}/x/y@db.example/z",
    f"https://ada:p@{S}@x.example/",
    f"https://:{S}@x.example/",
    f"amqp://{S}@x.example/",
    f'{{"password": "{S}"}}',
    f'{{\\"api_key\\": \\"{S}\\"}}',
    f"password='{S} {S}'",
    f"aws_secret_access_key = {S}",
    f"token: {S}",
    f"db_pass: {S}",
    f"setenv HF_TOKEN {S}",
    f"machine x.example login ada password {S}",
    f"<password>{S}</password>",
    f'export HF_TOKEN="{S}',
    *(f"https://user:{start}/{S}@{host}" for start in ("1", "12345") for host in ("host", "x.example/y", "h:80")),
    f"https://ada.l:12/{S}@x.example",
    f"read: {(S * 6)[:64]}, then",
    f"{(S * 6)[:64]}\n{(S + '/+') * 5}",
    f'"{(S * 6)[:70]}"',
    *(f"{start}pwd={S};x=1" for start in ("Server=a;UID=sa;", "ODBC;", "Driver={x};UID=b;", "")),
    f"DRIVER=x;Uid=a;Pwd={{{S};{S}}};b=1",
    f'{{"pwd": "{S}", "pass": "{S}"}}',
    f'{{"auths": {{"r.example": {{"auth": "{S}"}}}}}}',
    *(f"{name} {S}" for name in ("apikey", "api key", "API-key:", "password", "Passwort", "access key", "token")),
    *(f"the {name} {verb} {S}." for name in ("password", "api key", "token", "secret") for verb in ("is", "was")),
    *(f"das Passwort ist '{S}'", f"mot de passe: {S}", f"密码\N{FULLWIDTH COLON}{S}", f"Kennwort lautet {S}"),
    *(f"wandb login {option}{S}" for option in ("", "--relogin ", "--host=https://w.example --relogin ")),
    f'wandb.login(key="{S}")',
    *(f"https://x.example/r?next=%2Fa%3F{name}%3D{S}%26b%3D1" for name in ("token", "sig", "key", "access_token")),
    *(f"token{sign}{S}" for sign in ("%3D", "%3d", "%253D", "%3A%20")),
    f"url=postgres%3A%2F%2Fada%3A{S}%40db.example%2Fx",
    f"Bearer%20{S}",
)
def test_values_that_go(text: str) -> None:
    once = masked(text)
    assert S not in once
    safe = mask_secrets(report([], Snapshot(observed_errors=(ObservedError(text=text, source="x"),))))
    assert S not in msgspec.json.encode(safe).decode()
    assert MASK in once
    assert masked(once) == once


@every(
    "max_tokens=4096 num_tokens: 512 tokens_per_second=12.5k pad_token_id=0",
    "KeyError: 'weight' key: value and monkey: y",
    "docker run -u 1000:1000 -p 8080:80 image",
    "nvidia-smi -pm 1; nvidia-smi -pl 300; mkdir -p a/b",
    "the token is invalid; a secret was found; passed 3 tests",
    "http://host.example:8080/path@v1.0",
    "http://[::1]:8080/a@b",
    "docker://registry:5000/image@sha256:" + "9f" * 32,
    "http://git:3000/a/b@v1.2 http://localhost:8000/a@b",
    "9F86D081884C7D659A2FEAA0C55AD015A3BF4F1B2B0B822CD15D6C15B0F00A08",
    "sha256=" + "aB3dE" * 8 + "xyz sha384-" + "aB3d" * 16 + " sha512-" + "aB3d" * 21 + "aA==",
    "/opt/Ada/" + "folder9/" * 6 + "Library",
    "_ZN3c104cuda20CUDACachingAllocator9allocatorE_ZN2at4_ops3add4callERKNS_6Tens",
    "git+https://github.com/a/b@main",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "task-abcdefghijklmnopqrstuvwxyz disk-image-of-the-machine-number-one",
    "--xla_gpu_enable_triton_gemm=false --xla_disable_hlo_passes=a --xla_dump_hlo_pass_re=.*",
    "DispatchKey: CUDA, dispatch key CUDA",
    "-----BEGIN CERTIFICATE-----",
    "session: 3",
    *("PWD=/a/b:/c pwd: /workspace pwd: error retrieving current directory", "PGPASSFILE=/home/u/.pgpass"),
    *("password: no", "Access denied (using password: YES)", "password is not set", "password: not set", "token: none"),
    *("the token is sm_90", "secret 1.2.3", "token 0x7ffe12345678abcd", "key is v2.5.1"),
    *("tokenizer Qwen2Tokenizer tokenizer=Llama3Fast tokenizers==0.21.0", "passed 12tests, bypass mode2"),
    *("uuid%3D123e4567-e89b-12d3-a456-426614174000", "key is layers.0.weight; token ncclDevKernel_AllReduce2"),
    *("login to node12 at 10:00", "gcloud login node12", "https%3A%2F%2Fx.example%2Fa%3Fb%3D1"),
    "torch==2.5.1+cu124 0000:1b:00.0 GPU-5818afbd-93e1-6488-ffb4-e55ad89d9abc",
)
def test_what_diagnoses_stays(text: str) -> None:
    assert masked(text) == text


@every("a", "token", "TOKEN_", "pwd=", "password is ", "eyJaaaaaaaa-", "eyJaaaaaaaa.", "setenv TOKEN", "%3D",
        "%3Atoken", "a%3A%2F%2Fb", "login ", "wandb login -a ", "api key ", "key=", "sk-", "http://a:", "mysql -p ",
        "{", "key is ", "mot de ", "密码", " -u a ", "cookie ")  # fmt: skip
def test_cost_grows_with_the_length(unit: str) -> None:
    """Eight times the text takes at most about eight times as long; a square would take 64 times."""

    def cost(length: int) -> float:
        text = "password=x " + unit * (length // len(unit))
        took = []
        for _ in range(2):
            began = process_time()
            masked(text)
            took.append(process_time() - began)
        return min(took)

    assert cost(24_000) < 24 * max(cost(3_000), 0.002), unit


_LETTERS = {"letters": "aB3", "capitals": "AB3", "word": "a-B3", "dotted": "aB3.", "base64": "aB3+"}


@every(load_matrix().secrets)
def test_every_key_of_the_matrix(row: SecretRow) -> None:
    for start in row.starts:
        key = start + (_LETTERS[row.of] * 200)[: row.least] + "aB3"
        assert masked(f"said {key}, then") in (f"said {MASK}, then", f"said {MASK}aB3, then"), start
        assert masked(start) == start


@given(st.text(alphabet="akeyPT_=:-\"' u/@.p", max_size=60))
def test_masking_twice_changes_nothing(text: str) -> None:
    assert masked(masked(text)) == masked(text)


def test_saved_reports_are_compared_without_their_secrets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in (1, 2):
        values = {"CUDA_CACHE_PATH": f"https://ada:{S}{number}@x.example", "NVIDIA_API_KEY": f"{S}{number}"}
        found = report([], Snapshot(variables=Variables(values=values, complete=True)))
        (tmp_path / f"{number}.json").write_bytes(msgspec.json.encode(found))
    files = [str(tmp_path / f"{number}.json") for number in (1, 2)]
    for form in ("text", "json"):
        main(["diff", *files, "--format", form])
        assert S not in capsys.readouterr().out


# --- Every place of a report that holds text, and every shape of a secret: nothing of it is left --------------------
UUID = "ab-12345678-9abc-4def-8123-456789abcdef"
SHAPES = [
    f"https://ada:{S}@host", f"https://ada:{S}/a@ss@host/path", f"https://ada:p/a@{S}@host/path",
    f"https://ada:a/b@c/d@{S}@index.example/simple", f"https://ada:p@/{S}@host:8080/simple",
    f"https://ada@corp.example:{S}/x@y@host/path", f"torch @ git+https://ada:{S}/e@c@git.example/o/r.git@main",
    f"https://conda.anaconda.org/t/{S}/channel", f"https://repo.example/conda/t/{S}/main/linux-64",
    f"https://conda.anaconda.org/t/{S}/", f"https://conda.anaconda.org/t/{S}", f"conda.anaconda.org/t/tk-{S}/pkgs/main",
    f"https://x.example/t/{UUID}", f"HF_TOKEN={S}", f"Authorization: Bearer {S}", f"2.5.1+hf_{S}{S}",
    *(f"{row.starts[0]}{('aB3' if row.of != 'capitals' else 'AB3') * 40}"[:200] for row in load_matrix().secrets),
]  # fmt: skip


def sample(hint: Any, text: str) -> Any:
    """A value of the type that says ``text`` wherever it may say anything."""
    if get_origin(hint) is Literal:
        return get_args(hint)[-1]
    arguments = [each for each in get_args(hint) if each not in (type(None), Ellipsis)]
    if get_origin(hint) in (Union, types.UnionType):
        return sample(arguments[0], text)
    if get_origin(hint) is tuple:
        return tuple(sample(each, text) for each in arguments)
    if get_origin(hint) is dict:
        return {sample(arguments[0], text): sample(arguments[1], text)}
    if hint is str:
        return text
    if hint in (int, float, bool):
        return 1 if hint is not bool else True
    kind = get_origin(hint) or hint
    parameters: dict[Any, Any] = dict(zip(getattr(kind, "__parameters__", []), arguments, strict=False))
    fields = {name: parameters.get(each, each) for name, each in get_type_hints(kind).items()}
    own = {field.name for field in msgspec.structs.fields(kind)}
    filled = {
        name: sample(_bound(each, parameters), text)
        for name, each in fields.items()
        if name in own and not (kind is Report and name == "schema_version")
    }
    return kind(**filled)


def _bound(hint: Any, parameters: dict[Any, Any]) -> Any:
    """``tuple[T, ...]`` with what ``T`` is."""
    return hint[tuple(parameters.values())] if parameters and getattr(hint, "__parameters__", []) else hint


def said(text: str) -> Report:
    report: Report = sample(Report, text)
    return report


def test_the_sample_says_it_in_every_kind_of_place() -> None:
    """So that the tests below can fail."""
    told = msgspec.json.encode(said("needle")).decode()
    for place in (
        '"version":"needle"',
        '"rule":"needle"',
        '"installer":"needle"',
        '{"needle":"needle"}',
        '"unit":"needle"',
    ):
        assert place in told


@every(lambda: [(mask_secrets, text) for text in SHAPES] + [(redact, text) for text in thorough.sample(SHAPES)])
def test_no_place_keeps_a_secret(change: Any, text: str) -> None:
    told = msgspec.json.encode(change(said(text))).decode()
    assert MASK in told
    assert S not in told
    assert UUID not in told
    assert text not in told


def test_a_saved_report_is_masked_alike() -> None:
    encoded = msgspec.json.encode(said(f"https://ada:{S}@host"))
    assert S not in msgspec.json.encode(mask_secrets(read_report(encoded))).decode()


_PASSWORD = st.text(alphabet="aZ9/@-_!", min_size=1, max_size=12)


@given(_PASSWORD, _PASSWORD, st.sampled_from(["index.example", "localhost", "10.1.2.3", "host"]))
def test_a_password_may_hold_slashes_and_at_signs(before: str, after: str, host: str) -> None:
    assert S not in masked(f"https://ada:{before}{S}{after}@{host}:8080/simple")


@cases(
    "text",
    "https://forums.developer.nvidia.com/t/jetpack-6-1-install-pytorch-2-5-1/318629",
    "https://discuss.pytorch.org/t/a-topic/1234/7, and more",
    "https://discuss.pytorch.org/t/install-cuda-12-4-on-ubuntu-22-04",
    "/mnt/t/data/torch",
    "https://repo.example/x/y/t",
)
def test_a_topic_of_a_forum_and_a_folder_stay(text: str) -> None:
    assert masked(text) == text


def test_a_reference_behind_a_login_stays() -> None:
    assert masked(f"git+https://ada:{S}@git.example/o/r.git@v1.2") == f"git+https://{MASK}@git.example/o/r.git@v1.2"
