//! CTAs of a cluster: resident together, reached by rank, waiting for each other.
//!
//! While a CTA runs, the others of its cluster lie in `Machine::peers` by rank. The barrier of the cluster counts the threads
//! that have not ended. A CTA must not end while a peer may still reach into its shared memory: whatever a peer did there must be
//! known to a thread of the CTA by then, and what comes later is an error by itself.

use std::mem::take;
use std::rc::Rc;

use super::error::{EmuError, Fault};
use super::race::{Knowledge, WarpClock};
use super::sched::{Cta, Machine};
use super::warp::State;

impl Machine<'_> {
    /// Runs a warp for a while, with the other CTAs of its cluster at hand.
    pub(super) fn slice_of(
        &mut self,
        cluster: &mut [Cta],
        rank: usize,
        warp: usize,
    ) -> Result<(), EmuError> {
        self.settle_sent(cluster);
        if cluster.len() == 1 {
            return self.slice(&mut cluster[0], warp);
        }
        self.peers = cluster.iter_mut().map(|cta| take(&mut cta.state)).collect();
        cluster[rank].state = take(&mut self.peers[rank]);
        let result = self.slice(&mut cluster[rank], warp);
        for (index, (cta, peer)) in cluster.iter_mut().zip(take(&mut self.peers)).enumerate() {
            if index != rank {
                cta.state = peer;
            }
        }
        result
    }

    /// Lets the threads of a cluster pass that have all arrived.
    pub(super) fn pass_cluster_barrier(cluster: &mut [Cta]) {
        let mut warps = cluster.iter().flat_map(|cta| &cta.warps);
        let waits = warps.clone().any(|warp| warp.arrived != 0);
        if !waits || !warps.all(|warp| warp.exists & !warp.exited & !warp.arrived == 0) {
            return;
        }
        let mut all = Knowledge::default();
        for cta in &mut *cluster {
            all.join(&take(&mut cta.state.cluster_released));
        }
        let all = Rc::new(all);
        for cta in cluster {
            cta.state.cluster_acquired = Rc::clone(&all);
            for warp in &mut cta.warps {
                warp.passed |= take(&mut warp.arrived);
                for group in &mut warp.groups {
                    if group.state == State::Cluster {
                        group.state = State::Ready;
                    }
                }
            }
        }
    }

    /// All threads of a CTA have ended.
    pub(super) fn end(&mut self, cluster: &mut [Cta], rank: usize) -> Result<(), EmuError> {
        self.settle_sent(cluster);
        let cta = &mut cluster[rank];
        if take_ended(&mut cta.state.ended) {
            return Ok(());
        }
        self.check_groups(&cta.state)?;
        self.end_transfers(cta)?;
        if cluster.len() == 1 || !self.options.check_races {
            return Ok(());
        }
        let cta = &mut cluster[rank];
        let clocks: Vec<&WarpClock> = cta.warps.iter().map(|warp| &warp.clock).collect();
        let mut barriers = cta.state.mbarriers.values();
        let reached = || barriers.find_map(|barrier| barrier.unknown(&clocks));
        let Some(record) = cta.state.shadow.unknown(&clocks).or_else(reached) else {
            return Ok(());
        };
        let at = self.place(record);
        let fault = Fault::Cluster(format!(
            "the CTA of rank {rank} ends, and nothing tells it that the access at {at} to its shared memory is over: \
             it should wait for that, or meet the others at `barrier.cluster`"
        ));
        let line = self.entry.code.last().map_or(0, |inst| inst.line);
        Err(self.fault(&cta.state, 0, line, (0, fault)))
    }

    /// The index of another CTA of the cluster that can be reached.
    pub(super) fn peer(&self, rank: u64) -> Result<usize, Fault> {
        let size = self.cluster.iter().product::<u32>();
        match self.peers.get(rank as usize) {
            None => Err(Fault::Cluster(format!(
                "there is no CTA of rank {rank} among {size}"
            ))),
            Some(peer) if peer.ended => Err(Fault::Cluster(format!(
                "the CTA of rank {rank}, whose shared memory this is, has ended"
            ))),
            Some(_) => Ok(rank as usize),
        }
    }
}

/// Sets a flag; whether it was set.
fn take_ended(ended: &mut bool) -> bool {
    std::mem::replace(ended, true)
}
