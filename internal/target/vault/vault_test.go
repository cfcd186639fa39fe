package vault_test

import (
	"testing"

	"github.com/credence-id/credence/internal/target/targettest"
	"github.com/credence-id/credence/internal/target/vault"
)

func TestSides(t *testing.T) { targettest.Sides(t, vault.System(), "") }
