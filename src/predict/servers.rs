//! What agents share, and how long it takes.

use super::agent::{Agent, WARPS};
use super::cost::Cost;
use super::sm::Sm;
use super::tracking::Moved;

/// What agents share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Resource {
    /// Starting instructions.
    Issue,
    /// Integers, comparisons, conversions.
    Simple,
    /// Special functions.
    Special,
    /// Shared memory, and exchange within warps.
    Shared,
    /// Tensor cores.
    Products,
    /// The way to the L2 cache.
    L2,
    /// Device memory.
    Memory,
}

impl Resource {
    /// Every resource.
    pub const ALL: [Resource; 7] = [
        Resource::Issue,
        Resource::Simple,
        Resource::Special,
        Resource::Shared,
        Resource::Products,
        Resource::L2,
        Resource::Memory,
    ];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Resource::Issue => "issue",
            Resource::Simple => "integers, conversions",
            Resource::Special => "special functions",
            Resource::Shared => "shared memory",
            Resource::Products => "tensor cores",
            Resource::L2 => "L2 cache",
            Resource::Memory => "device memory",
        }
    }
}

/// Who begins first is served first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Server {
    free: f64,
    pub(super) busy: f64,
}

impl Server {
    /// Takes so long from then on; when it is over.
    fn take(&mut self, now: f64, clocks: f64) -> f64 {
        self.free = self.free.max(now) + clocks;
        self.busy += clocks;
        self.free
    }
}

impl Sm<'_> {
    /// Serves an instruction of an agent; when it has issued it, and when its last result is there.
    pub(super) fn serve(&mut self, agent: usize, start: f64, cost: &Cost) -> (f64, f64) {
        let warps = f64::from(self.agents[agent].warps);
        let alone = warps / WARPS as f64;
        let figures = self.figures;
        let mut take = |resource: Resource, clocks: f64| match clocks > 0.0 {
            true => self.servers[resource as usize].take(start, clocks),
            false => start,
        };
        let issued = take(Resource::Issue, cost.issued * alone).max(start + cost.issued);
        let over = take(Resource::Simple, cost.simple * warps / figures.simple)
            .max(start + cost.simple * WARPS as f64 / figures.simple)
            .max(take(
                Resource::Special,
                cost.special * warps / figures.special,
            ))
            .max(start + cost.special * WARPS as f64 / figures.special)
            .max(take(Resource::Shared, cost.shared * warps / figures.shared))
            .max(take(
                Resource::Products,
                cost.products * warps / figures.warp_products,
            ))
            .max(start + cost.products * WARPS as f64 / figures.warp_products);
        (issued, issued.max(over))
    }

    /// Serves products that warpgroups start; when they are over.
    pub(super) fn multiply(&mut self, agent: usize, start: f64, cost: &Cost) -> f64 {
        let warps = f64::from(self.agents[agent].warps);
        let clocks = cost.products * warps / self.figures.warpgroup_products;
        let reads = cost.shared * warps / self.figures.shared;
        self.servers[Resource::Shared as usize].busy += reads;
        self.servers[Resource::Products as usize].take(start, clocks.max(reads))
            + self.figures.product_latency
    }

    /// Moves bytes in so many rows from device memory, where this part is in no cache; when they are there.
    pub(super) fn fetch(
        &mut self,
        start: f64,
        bytes: f64,
        rows: f64,
        missed: f64,
        more: f64,
    ) -> f64 {
        let figures = self.figures;
        let clocks = bytes / figures.l2 + rows * figures.row;
        let by_cache = self.servers[Resource::L2 as usize].take(start, clocks);
        let by_memory = self.servers[Resource::Memory as usize]
            .take(start, bytes * missed / self.setting.memory);
        let latency = figures.l2_latency + missed.min(1.0) * figures.dram_latency + more;
        by_cache.max(by_memory) + latency
    }

    /// Moves a box from device memory; when it is there.
    pub(super) fn fetch_box(&mut self, start: f64, moved: &Moved) -> f64 {
        let missed = self.setting.missed(moved.source);
        let longer =
            (moved.longer - 1.0) * (moved.bytes / self.figures.l2 + moved.rows * self.figures.row);
        self.servers[Resource::L2 as usize].take(start, longer);
        // The map itself is fetched before its first box.
        let described = match self.maps.insert(moved.source) {
            true => self.figures.map_latency,
            false => 0.0,
        };
        let more = self.figures.box_latency + described;
        self.fetch(start, moved.bytes, moved.rows, missed, more)
    }

    /// Moves bytes to device memory.
    pub(super) fn store(&mut self, start: f64, bytes: f64) -> f64 {
        let by_cache = self.servers[Resource::L2 as usize].take(start, bytes / self.figures.l2);
        let by_memory =
            self.servers[Resource::Memory as usize].take(start, bytes / self.setting.memory);
        self.end = self.end.max(by_memory);
        by_cache
    }

    /// Changes what others change, too.
    pub(super) fn change(&mut self, start: f64, others: f64) -> f64 {
        let clocks = others * self.figures.atomic;
        let over = self.servers[Resource::Memory as usize].take(start, clocks);
        self.end = self.end.max(over);
        over
    }

    /// Writes and reads what registers have no room for, which passes through the caches.
    pub(super) fn spill(&mut self, agent: usize) {
        let Agent { warps, time, .. } = self.agents[agent];
        let bytes = f64::from(2 * 32 * warps * self.kernel.needs.spilled);
        let over = self.servers[Resource::Memory as usize].take(time, bytes / self.setting.memory);
        self.servers[Resource::L2 as usize].take(time, bytes / self.figures.l2);
        self.agents[agent].time = over;
    }
}
