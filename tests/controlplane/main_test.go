// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"os"
	"testing"

	"github.com/satchel-dev/satchel/tests/controlplane"
)

func TestMain(m *testing.M) { os.Exit(controlplane.RunMain(m)) }
