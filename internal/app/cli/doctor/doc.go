// Package doctor is "credence doctor": the diagnosis of internal/doctor as text, JSON or YAML, and the errors of clouds in words. Nothing is
// changed.
package doctor
