// SPDX-License-Identifier: Apache-2.0

package git

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/versions"
)

// tagsOf is a list of annotated tags, each with what it points at.
func tagsOf(count int, name func(i int) string) []string {
	refs := []string{number(0), "HEAD"}
	for i := range count {
		full := tagPrefix + name(i)
		refs = append(refs, number(i), full, number(i+count), full+peeledSuffix)
	}
	return refs
}

// TestM22RangeOverManyTags has the slowest range over as many tags as a server may have.
func TestM22RangeOverManyTags(t *testing.T) {
	slow := ">9" + strings.Repeat("||>9", 31)
	below := func(i int) string { return fmt.Sprintf("v1.%d.%d-rc.1.2.3", i/1000, i%1000) }
	cases := map[string]struct {
		reason string
		refs   []string
		want   string
		err    fetch.Reason
	}{
		"None":  {"none is in the range", tagsOf(100_000, below), "", fetch.LimitExceeded},
		"First": {"the best is the first", append(tagsOf(1, func(int) string { return "v10" }), tagsOf(99_999, below)[2:]...), "v10", ""},
		"AtLimit": {"as many as are compared", tagsOf(versions.MaxCompared, func(i int) string {
			return fmt.Sprintf("v10.%d.%d", 1+i/1000, i%1000)
		}), "v10.20.999", ""},
		"OneMore": {"one more than is compared", tagsOf(versions.MaxCompared+1, below), "", fetch.LimitExceeded},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			list := advertisement("", tc.refs...)
			f := fetcher(t, Options{URL: hostile(t, list, nil), SemVer: slow})
			began := time.Now()
			resolved, err := f.Resolve(t.Context())
			if took := time.Since(began); took > 12*time.Second {
				t.Errorf("%s: it took %v", tc.reason, took)
			}
			if fetch.ReasonOf(err) != tc.err || resolved.Reference != tc.want {
				t.Errorf("%s: %+v, %v", tc.reason, resolved, err)
			}
			if tc.err != "" && !strings.Contains(err.Error(), "more than 20000 tags are versions above the range") {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}
