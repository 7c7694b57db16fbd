// Why a task has its label: prior, own votes one after the other, and what the votes on other tasks add.

// Log-odds of one label against all others.
function logOdds(law, target) {
  let most = -Infinity;
  for (let k = 0; k < law.length; k++) if (k !== target && law[k] > most) most = law[k];
  if (most === -Infinity) return Infinity;
  let others = 0;
  for (let k = 0; k < law.length; k++) if (k !== target) others += Math.exp(law[k] - most);
  return law[target] - most - Math.log(others);
}

// Place in the table of a voter: position, votes of its parents, its own vote.
function tableRow(voter, track, lane, task) {
  const shape = voter.shape;
  let at = Math.min(lane.first + task, shape[0] - 1), axis = 1;
  for (const parent of voter.parents) at = at * shape[axis++] + track.votes[parent][task];
  return at * shape[axis] + track.votes[voter.place][task];
}

function explain(data, track, laneIndex, task, target) {
  const lane = track.lanes[laneIndex], n = lane.post.length;
  const law = lane.prior.map((one) => one[task]), prior = logOdds(law, target);
  const total = logOdds(lane.post.map((one) => one[task]), target);
  const exact = lane.exact === null ? total : logOdds(lane.exact.map((one) => one[task]), target);
  const own = [], unsplit = [];
  let before = prior;
  for (const place of data.order) {
    const voter = data.voters[place], code = track.votes[place][task];
    if (voter.lane !== laneIndex || code === voter.codes.length - 1) continue;
    if (voter.table === null) { unsplit.push({ voter, code }); continue; }
    const row = tableRow(voter, track, lane, task) * n;
    for (let k = 0; k < n; k++) {
      const evidence = voter.table[row + k];
      law[k] += evidence === null ? -LOG_LIMIT : evidence; // impossible
    }
    const after = logOdds(law, target);
    own.push({ voter, code, value: after - before });
    before = after;
  }
  return { prior, own, unsplit, neighbours: exact - before, averaging: lane.exact === null ? null : total - exact, total, task, laneIndex, target };
}

// Votes on larger pieces that hold the task: part of what the neighbours say.
function containing(data, track, laneIndex, task) {
  const start = track.lanes[laneIndex].starts[task], stop = track.lanes[laneIndex].stops[task], found = [];
  data.voters.forEach((voter, v) => {
    if (voter.lane === laneIndex) return;
    const lane = track.lanes[voter.lane];
    for (let i = firstStop(lane, start); i < lane.n && lane.starts[i] < stop; i++) {
      if (lane.starts[i] <= start && lane.stops[i] >= stop && voter.classes[track.votes[v][i]] >= 0)
        found.push({ voter, code: track.votes[v][i], from: lane.starts[i], to: lane.stops[i] });
    }
  });
  return found;
}

// First task that ends after an element.
function firstStop(lane, element) {
  let low = 0, high = lane.n;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lane.stops[middle] <= element) low = middle + 1; else high = middle;
  }
  return low;
}
