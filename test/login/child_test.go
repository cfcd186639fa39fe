package login_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"
)

// child is a program that answers lines of JSON with lines of JSON, and ends with its standard input.
type child struct {
	command *exec.Cmd
	input   io.WriteCloser
	output  *bufio.Reader
	// complaints is its standard error; it is complete when the child has ended.
	complaints bytes.Buffer
	turn       sync.Mutex
}

func startChild(name string, args ...string) (*child, error) {
	c := &child{command: exec.Command(name, args...)}
	c.command.Stderr = &c.complaints
	var err error
	if c.input, err = c.command.StdinPipe(); err != nil {
		return nil, err
	}
	output, err := c.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.output = bufio.NewReader(output)
	return c, c.command.Start()
}

// line returns the next line of the child's output.
func (c *child) line() (string, error) {
	text, err := c.output.ReadString('\n')
	if err != nil {
		c.stop()
		return "", fmt.Errorf("%s has ended: %w\n%s", c.command, err, c.complaints.String())
	}
	return text, nil
}

// ask waits for the answer.
func (c *child) ask(question, answer any) error {
	text, err := json.Marshal(question)
	if err != nil {
		return err
	}
	c.turn.Lock()
	defer c.turn.Unlock()
	if _, err := c.input.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("ask %s: %w", c.command, err)
	}
	said, err := c.line()
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(said), answer)
}

func (c *child) stop() {
	_ = c.input.Close()
	kill := time.AfterFunc(10*time.Second, func() { _ = c.command.Process.Kill() })
	defer kill.Stop()
	_ = c.command.Wait()
}
