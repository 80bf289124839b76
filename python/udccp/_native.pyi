"""The native half: crates/udccp-python. Use the modules around it instead."""

__version__: str
LAB_VERSION: str

class Prepared:
    id: str
    asks: str
    seed: int
    @staticmethod
    def from_file(
        path: str, set: list[tuple[str, str]], case: str | None, variant: str | None
    ) -> Prepared: ...
    @staticmethod
    def from_json(
        json: str, set: list[tuple[str, str]], case: str | None, variant: str | None
    ) -> Prepared: ...

def run(
    prepared: Prepared,
    seed: int | None = None,
    check: bool = False,
    pcap: str | None = None,
    snaplen: int | None = None,
) -> str: ...
def run_many(runs: list[tuple[Prepared, int | None]], workers: int) -> list[str]: ...
def protocols() -> str: ...
def panic_for_test(place: str) -> None: ...
