// Records an iteration as a JavaScript tool with seed 2's documented API would: it reads the whole file, copies the artifacts,
// adds its entry, and writes the file anew. usage: node tracking_writer.mjs STORAGE NUMBER SCORE [ARTIFACT]...
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';

const [storage, number, score, ...artifacts] = process.argv.slice(2);
const path = join(storage, 'best-output-tracking.json');
const data = existsSync(path)
  ? JSON.parse(readFileSync(path, 'utf8'))
  : {
      loop_id: 'loop-001',
      config: {
        storage_path: storage,
        selection: { mode: 'highest_quality_verified', threshold: 70, require_verification: true },
        keep_all_iterations: true,
        quality_weights: { validation: 0.3, completeness: 0.25, correctness: 0.25, readability: 0.1, efficiency: 0.1 },
      },
      iterations: [],
    };
const snapshot = join(storage, 'iterations', `iteration-${number.padStart(3, '0')}`);
mkdirSync(snapshot, { recursive: true });
for (const artifact of artifacts) copyFileSync(artifact, join(snapshot, basename(artifact)));
const last = data.iterations.at(-1) ?? null;
data.iterations.push({
  iteration_number: Number(number),
  timestamp: new Date(Date.UTC(2026, 0, 28, 10, Number(number))).toISOString(),
  quality_score: Number(score),
  quality_delta: last === null ? null : Number(score) - last.quality_score,
  dimensions: Object.fromEntries(Object.keys(data.config.quality_weights).map((name) => [name, Number(score) / 100])),
  tokens_used: 0,
  token_cost_usd: 0,
  execution_time_ms: 0,
  verification_status: 'passed',
  snapshot_path: snapshot,
  artifacts: artifacts.map((artifact) => join(snapshot, basename(artifact))),
  reflections: ['by the original'],
});
data.best_iteration_number = data.iterations.reduce((top, each) => (each.quality_score > top.quality_score ? each : top)).iteration_number;
data.last_updated = new Date(Date.UTC(2026, 0, 28, 11, Number(number))).toISOString();
writeFileSync(path, JSON.stringify(data, null, 2));
