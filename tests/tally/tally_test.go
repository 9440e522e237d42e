// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestTally(t *testing.T) {
	cases := map[string]struct {
		reason string
		input  []string
		ok     bool
		want   []string
		not    []string
	}{
		"passed": {
			reason: "a passing package takes one line, and its tests are counted",
			input: []string{
				`{"Action":"output","Package":"p","Test":"TestA","Output":"chatter\n"}`,
				`{"Action":"pass","Package":"p","Test":"TestA/one"}`,
				`{"Action":"pass","Package":"p","Test":"TestA"}`,
				`{"Action":"output","Package":"p","Output":"ok p 1s\n"}`,
				`{"Action":"pass","Package":"p"}`,
			},
			ok:   true,
			want: []string{"ok p 1s\n", "PASS: 1 tests and 1 subtests in 1 packages: 2 passed, 0 failed, 0 skipped"},
			not:  []string{"chatter"},
		},
		"failed": {
			reason: "the output of a failed test has to be seen",
			input: []string{
				`{"Action":"output","Package":"p","Test":"TestA/one","Output":"wrong\n"}`,
				`{"Action":"fail","Package":"p","Test":"TestA/one"}`,
				`{"Action":"fail","Package":"p","Test":"TestA"}`,
				`{"Action":"fail","Package":"p"}`,
			},
			want: []string{"wrong\n", "FAIL: 1 tests", "2 failed"},
		},
		"panicked": {
			reason: "a test that never ended is the one that matters after a panic",
			input: []string{
				`{"Action":"output","Package":"p","Test":"TestA","Output":"panic: here\n"}`,
				`{"Action":"fail","Package":"p"}`,
			},
			want: []string{"panic: here\n", "FAIL"},
		},
		"not built": {
			reason: "a package that does not compile fails the run though no test failed",
			input: []string{
				`{"Action":"pass","Package":"p","Test":"TestA"}`,
				`{"Action":"build-output","ImportPath":"q","Output":"q.go:1: no\n"}`,
				`{"Action":"build-fail","ImportPath":"q"}`,
			},
			want: []string{"q.go:1: no\n", "FAIL"},
		},
		"exited with an error": {
			reason: "go test may fail without any event that says so",
			input: []string{
				`{"Action":"pass","Package":"p","Test":"TestA"}`,
				`{"Action":"go-test-failed"}`,
			},
			want: []string{"FAIL"},
		},
		"slow": {
			reason: "the tests that take longest are worth a look",
			input: []string{
				`{"Action":"pass","Package":"p","Test":"TestA","Elapsed":9.9}`,
				`{"Action":"pass","Package":"p","Test":"TestB","Elapsed":12}`,
				`{"Action":"pass","Package":"p","Test":"TestC/part","Elapsed":99}`,
				`{"Action":"pass","Package":"p","Test":"TestC","Elapsed":100}`,
				`{"Action":"pass","Package":"p"}`,
			},
			ok:   true,
			want: []string{"slow: 100 s TestC (p)\nslow: 12 s TestB (p)\n"},
			not:  []string{"TestA", "part"},
		},
		"nothing ran": {
			reason: "an empty run proves nothing",
			want:   []string{"FAIL: 0 tests"},
		},
		"skipped": {
			reason: "what was skipped, and why, stands at the end",
			input: []string{
				`{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:1: needs gcc\n"}`,
				`{"Action":"skip","Package":"p","Test":"TestA"}`,
				`{"Action":"pass","Package":"p"}`,
			},
			ok:   true,
			want: []string{"skipped: TestA (p): a_test.go:1: needs gcc"},
		},
		"foreign line": {
			reason: "what is not JSON was meant for people",
			input:  []string{"go: downloading x", `{"Action":"pass","Package":"p","Test":"TestA"}`},
			ok:     true,
			want:   []string{"go: downloading x\n"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			tally := newTally(&out)
			if err := tally.read(strings.NewReader(strings.Join(tc.input, "\n"))); err != nil {
				t.Fatalf("reading: %v", err)
			}
			if ok := tally.close(time.Second); ok != tc.ok {
				t.Errorf("%s: close() = %t, want %t", tc.reason, ok, tc.ok)
			}
			for _, want := range tc.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%s: output misses %q:\n%s", tc.reason, want, &out)
				}
			}
			for _, not := range tc.not {
				if strings.Contains(out.String(), not) {
					t.Errorf("%s: output has %q:\n%s", tc.reason, not, &out)
				}
			}
		})
	}
}
