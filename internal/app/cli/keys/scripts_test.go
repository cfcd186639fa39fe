package keys_test

import (
	"testing"

	"github.com/credence-id/credence/internal/app/cli/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m) }

func TestScripts(t *testing.T) { clitest.Run(t) }
