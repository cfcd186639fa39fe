// Package explain is "credence explain": what becomes of pods by internal/explain, as text, JSON or YAML. In go names of objects, or files
// with them; out come explanations and the exit code of their verdicts.
package explain
