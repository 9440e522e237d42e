// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"testing"

	"github.com/satchel-dev/satchel/tests/measure"
)

// BenchmarkRender renders the BundleDeployment of a cluster, with its hash.
func BenchmarkRender(b *testing.B) {
	renderer, err := NewRenderer("apps", "7f3a91c2de", fullData(b), nil)
	if err != nil {
		b.Fatal(err)
	}
	cluster := canary()
	measure.CPU(b)
	for b.Loop() {
		child, err := renderer.Render(cluster)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := SpecHash(&child.Spec, nil); err != nil {
			b.Fatal(err)
		}
	}
}
