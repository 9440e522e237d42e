// SPDX-License-Identifier: Apache-2.0

package certificate

import "testing"

// BenchmarkMake measures one decision: with nothing to do, with a successor, and the first one.
func BenchmarkMake(b *testing.B) {
	for name, bring := range map[string]func(*cluster){
		"first":     func(c *cluster) { c.authority, c.serving = nil, nil },
		"kept":      func(*cluster) {},
		"successor": func(c *cluster) { c.now = start.Add(AuthorityLife - Succession); c.settle(b) },
	} {
		b.Run(name, func(b *testing.B) {
			c := newCluster(hook)
			c.settle(b)
			bring(c)
			b.ReportAllocs()
			for b.Loop() {
				c.make(b, false)
			}
		})
	}
}
