// Reads a best-output-tracking.json as a JavaScript tool with seed 2's documented API would, and prints what it finds.
// It relies on nothing but the documented fields, and does arithmetic without looking whether a number is there.
import { readFileSync } from 'node:fs';

const data = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const all = data.iterations;
const best = all.find((each) => each.iteration_number === data.best_iteration_number) ?? null;
const byScore = all.reduce((top, each) => (top === null || each.quality_score > top.quality_score ? each : top), null);
const verified = all.filter((each) => each.verification_status === 'passed');
const eligible = verified.length > 0 ? verified : all;
const selected = eligible.reduce((top, each) => (top === null || each.quality_score > top.quality_score ? each : top), null);

const table = all.map((each) => {
  const delta = each.quality_delta === null ? '-' : `${each.quality_delta > 0 ? '+' : ''}${each.quality_delta.toFixed(1)}`;
  return [
    each.iteration_number, `${each.quality_score}%`, `${delta}%`, each.tokens_used.toString(),
    `$${each.token_cost_usd.toFixed(4)}`, each.execution_time_ms.toFixed(0), each.artifacts.length, each.reflections.join('; '),
    Object.keys(each.dimensions).join('+'), each.snapshot_path.split('/').pop(),
  ];
});

console.log(JSON.stringify({
  loop_id: data.loop_id,
  storage_path: data.config.storage_path,
  mode: data.config.selection.mode,
  threshold: data.config.selection.threshold,
  require_verification: data.config.selection.require_verification,
  keep_all_iterations: data.config.keep_all_iterations,
  weight_sum: Object.values(data.config.quality_weights).reduce((sum, weight) => sum + weight, 0).toFixed(2),
  best: best && best.iteration_number,
  best_by_score: byScore && byScore.iteration_number,
  selected: selected && selected.iteration_number,
  trajectory: all.map((each) => ({ iteration: each.iteration_number, quality: each.quality_score })),
  total_tokens: all.reduce((sum, each) => sum + each.tokens_used, 0),
  total_cost: all.reduce((sum, each) => sum + each.token_cost_usd, 0).toFixed(4),
  total_time: all.reduce((sum, each) => sum + each.execution_time_ms, 0),
  average: all.length === 0 ? 0 : (all.reduce((sum, each) => sum + each.quality_score, 0) / all.length).toFixed(2),
  last_updated: new Date(data.last_updated).toISOString(),
  table,
}));
