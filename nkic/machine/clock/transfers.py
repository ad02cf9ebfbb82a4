"""DMA, and what a runtime adds to a kernel."""

from __future__ import annotations

from nkic.machine.clock.figures import assumed, documented, fitted, measured, row
from nkic.machine.clock.sources import (
    GUIDE_V3,
    LIKE_V3,
    OVERVIEW,
    PERFORMANCE,
    PROFILES,
    RATES,
    SILENT,
)

DMA = (
    row(
        "dma.engine_rate",
        "bytes/ns",
        "of one engine's long rows where its core is alone on the chip",
        measured(18.1, f"{PERFORMANCE}: 32 KiB on one engine"),
        fitted(25.3, "published profiles of trn2: 400 to 409 GB/s of a core alone"),
        assumed(36.3, f"{RATES}, as much above it as on trn2"),
        least=0.01,
    ),
    row(
        "dma.engine_rate_shared",
        "bytes/ns",
        "of one engine's long rows where all cores of a stack of HBM move data",
        *(documented(rate, RATES) for rate in (17.0, 23.0, 33.0)),
        least=0.01,
    ),
    row(
        "dma.descriptor_bytes",
        "bytes",
        "longest element that a descriptor moves",
        assumed(4096, LIKE_V3),
        measured(4096, f"{PROFILES}: largest element of DMA_DIRECT2D"),
        least=1.0,
    ),
    row(
        "dma.descriptor_ns",
        "ns",
        "each descriptor beside its bytes",
        fitted(15, f"{OVERVIEW} (256-byte rows: 12 ns each) and its curve of efficiency"),
    ),
    row(
        "dma.start_hwdge_ns",
        "ns",
        "from the trigger to the first byte, descriptors made by hardware",
        measured(960, f"{OVERVIEW}: 920 to 1,000 ns"),
    ),
    row(
        "dma.start_swdge_ns",
        "ns",
        "from the trigger to the first byte, descriptors made by gpsimd",
        fitted(1540, f"{OVERVIEW}: 880 ns to make them, then 612 and 739 ns"),
    ),
    row(
        "dma.start_prepared_ns",
        "ns",
        "from the trigger to the first byte, descriptors prepared before the run",
        assumed(960, f"{SILENT}; the bandwidth guide has about 1,300 ns with the completion"),
    ),
    row(
        "dma.done_ns",
        "ns",
        "from the last byte to the semaphore",
        measured(298, f"{OVERVIEW}: 292 and 298 ns"),
    ),
    row(
        "dma.trigger_hwdge_ns",
        "ns",
        "of the engine that commands the hardware, each transfer",
        assumed(570, LIKE_V3),
        measured(570, f"{PROFILES}: DMA_DIRECT2D on sync (562) and scalar (576)"),
    ),
    row(
        "dma.trigger_swdge_ns",
        "ns",
        "of gpsimd, each transfer",
        assumed(580, LIKE_V3),
        measured(580, f"{PROFILES}: DMA_DIRECT2D on gpsimd (576 to 582)"),
    ),
    row(
        "dma.trigger_prepared_ns",
        "ns",
        "of the engine that starts prepared descriptors, each transfer",
        measured(8, f"{OVERVIEW}; {PERFORMANCE} (7 ns)"),
    ),
    row(
        "dma.partitions",
        "partitions",
        "that one engine serves",
        documented(8, f"{GUIDE_V3}, DMA; DMA overview"),
        least=1.0,
    ),
    row(
        "dma.transpose_hbm",
        "share",
        "of the copy rate, transposing out of HBM",
        assumed(0.9, LIKE_V3),
        documented(0.9, f"{GUIDE_V3}, DMA transpose"),
        least=0.01,
    ),
    row(
        "dma.transpose_sbuf",
        "share",
        "of the copy rate, transposing within SBUF",
        assumed(0.5, LIKE_V3),
        documented(0.5, f"{GUIDE_V3}, DMA transpose"),
        least=0.01,
    ),
    row(
        "dma.link_rate",
        "bytes/ns",
        "NeuronLink of a chip, divided by its cores",
        *(documented(rate, "pages of inf2, trainium2, trainium3") for rate in (96.0, 160.0, 320.0)),
        least=0.01,
    ),
)

LAUNCH = (
    row(
        "launch.before_ns",
        "ns",
        "from the runtime's start to the kernel's first instruction",
        fitted(20_000, "neuron-profile user guide: a trivial kernel takes 29.3 us in all (trn1)"),
        measured(13_000, "published profiles of trn2: prologues of short kernels"),
    ),
    row(
        "launch.after_ns",
        "ns",
        "from the kernel's last instruction to the runtime's end",
        assumed(1500, LIKE_V3),
        measured(1500, "published profiles of trn2: tails of short kernels"),
    ),
)
