// SPDX-License-Identifier: Apache-2.0

package kubeyaml_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/satchel-dev/satchel/internal/apply/tenant/kubeyaml"
)

// TestM38AliasesOfAKubeconfig: what multiplies a value is refused before it does. Read as it is, the document takes some hundred MiB.
func TestM38AliasesOfAKubeconfig(t *testing.T) {
	const config = "apiVersion: v1\nkind: Config\ncurrent-context: a\n"
	bomb := config + "x: &a \"" + strings.Repeat("x", 100_000) + "\"\ny: [" + strings.Repeat("*a, 1, ", 2_000) + "1]\n"
	for name, tc := range map[string]struct {
		document string
		want     error
	}{
		"plain":       {config, nil},
		"JSON":        {`{"apiVersion": "v1", "current-context": "a"}`, nil},
		"anchor":      {config + "x: &a b\n", nil},
		"bomb":        {bomb, kubeyaml.ErrAlias},
		"one alias":   {config + "x: &a b\ny: *a\n", kubeyaml.ErrAlias},
		"merge":       {config + "x: &a {b: c}\ny: {<<: *a}\n", kubeyaml.ErrAlias},
		"in a key":    {config + "x: &a b\n? *a\n: c\n", kubeyaml.ErrAlias},
		"quoted star": {config + "x: \"*a\"\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			var file clientcmdv1.Config
			err := kubeyaml.Unmarshal([]byte(tc.document), &file)
			runtime.ReadMemStats(&after)
			if !errors.Is(err, tc.want) || err == nil && file.CurrentContext != "a" {
				t.Errorf("%v, context %q", err, file.CurrentContext)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 20<<20 {
				t.Errorf("%d MiB were allocated", took>>20)
			}
		})
	}
}
