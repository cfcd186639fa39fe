package objects_test

import (
	"testing"

	"github.com/credence-id/credence/internal/app/cli/clitest"
)

func TestScripts(t *testing.T) { clitest.Run(t) }
