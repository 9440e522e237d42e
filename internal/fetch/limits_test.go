// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

func TestLimitFlags(t *testing.T) {
	cases := map[string]struct {
		reason string
		bind   func(*Limits, *pflag.FlagSet)
		want   []string
	}{
		"Content": {"who loads artifacts gets no flag without effect", (*Limits).BindContentFlags, []string{
			"max-depth", "max-entries", "max-extracted-bytes", "max-file-bytes", "max-path-bytes"}},
		"Transfer": {"what only upstreams are asked for", (*Limits).BindTransferFlags, []string{
			"max-download-bytes", "max-git-pack-bytes", "max-git-refs", "max-helm-index-bytes", "max-layers", "max-redirects"}},
		"All": {"each limit has a flag", (*Limits).BindFlags, []string{
			"max-depth", "max-download-bytes", "max-entries", "max-extracted-bytes", "max-file-bytes", "max-git-pack-bytes",
			"max-git-refs", "max-helm-index-bytes", "max-layers", "max-path-bytes", "max-redirects"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			limits := DefaultLimits()
			flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
			tc.bind(&limits, flags)
			var got []string
			flags.VisitAll(func(f *pflag.Flag) { got = append(got, f.Name) })
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
		})
	}
}
