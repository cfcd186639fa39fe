package process

import (
	"encoding/json"
	"io"
	"os"
	"regexp"
	"strings"
)

// tailSize is how much of a log's end is searched, in bytes.
const tailSize = 64 << 10

// maxCause bounds a cause, in bytes, so that it stays one line that a person reads.
const maxCause = 400

// noSpace is ENOSPC in words (errno(3)).
const noSpace = "no space left on device"

// CauseIn returns the line that explains best why the process ended that wrote to the log from offset on: a full disk
// above all, then a panic, then what the program printed last, or the last error in its log.
func CauseIn(logFile string, offset int64) string {
	file, err := os.Open(logFile)
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return ""
	}
	// A file shorter than the offset was cut while the process ran.
	if offset > info.Size() {
		offset = 0
	}
	tail, err := io.ReadAll(io.NewSectionReader(file, max(offset, info.Size()-tailSize), tailSize))
	if err != nil {
		return ""
	}
	return causeOf(string(tail))
}

func causeOf(log string) string {
	var last, lastError string
	for line := range strings.Lines(log) {
		line = strings.ToValidUTF8(strings.TrimRight(line, "\r\n"), "?")
		switch {
		case strings.Contains(line, noSpace):
			return shorten(fullDisk(message(line)), maxCause)
		case strings.HasPrefix(line, "panic: "), strings.HasPrefix(line, "fatal error: "):
			return shorten(line, maxCause)
		case !meaningful(line):
			continue
		case isError(line):
			lastError = line
		}
		last = line
	}
	// If a program's last line is not of a logger, that is why it ended; its log's last error may be noise of
	// the end itself.
	if isLogged(last) && lastError != "" {
		last = lastError
	}
	return shorten(message(last), maxCause)
}

// fullDisk puts the words first where a long message would hide them.
func fullDisk(text string) string {
	if i := strings.Index(text, noSpace); i >= 0 && i+len(noSpace) <= maxCause {
		return text
	}
	return noSpace + ": " + text
}

// meaningful reports false for stack traces, hints, indented lines of usage texts and empty lines.
func meaningful(line string) bool {
	if strings.TrimSpace(line) == "" || line[0] == ' ' || line[0] == '\t' {
		return false
	}
	return !strings.HasPrefix(line, "goroutine ") && !strings.HasPrefix(line, "exit status ") && !strings.HasPrefix(line, "hint: ") && !stackFrame.MatchString(line)
}

var (
	stackFrame = regexp.MustCompile(`^[\w./*()\-]+\((0x|\.\.\.|\{|\)$)`)
	// klogPrefix is such as `E0102 15:04:05.000000    1234 server.go:56] `.
	klogPrefix = regexp.MustCompile(`^([IWEF])\d{4} \d{2}:\d{2}:\d{2}\.\d+\s+\d+ [^\]]+\] `)
	errorLine  = regexp.MustCompile(`(?i)\blevel=(error|fatal)\b|"level":"(error|fatal|panic)"`)
	// ownName is how programs of Credence begin their last line.
	ownName = regexp.MustCompile(`^(credence[a-z-]*: |[Ee]rror: )+`)
)

func isError(line string) bool {
	if prefix := klogPrefix.FindStringSubmatch(line); prefix != nil {
		return prefix[1] == "E" || prefix[1] == "F"
	}
	return errorLine.MatchString(line)
}

func isLogged(line string) bool {
	return klogPrefix.MatchString(line) || strings.HasPrefix(line, "{") || strings.HasPrefix(line, "time=") || strings.HasPrefix(line, "level=")
}

// message drops what surrounds the words that a person wants to read.
func message(line string) string {
	line = klogPrefix.ReplaceAllString(line, "")
	var structured struct{ Msg, Error, Err string }
	if strings.HasPrefix(line, "{") && json.Unmarshal([]byte(line), &structured) == nil && structured.Msg != "" {
		line = structured.Msg
		if detail := structured.Error + structured.Err; detail != "" {
			line += ": " + detail
		}
	}
	return strings.Join(strings.Fields(ownName.ReplaceAllString(line, "")), " ")
}

func shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "…"
}
