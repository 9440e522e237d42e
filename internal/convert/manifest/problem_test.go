// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// TestErrorListsProblems: sorted, without repetitions, nil without any.
func TestErrorListsProblems(t *testing.T) {
	if err := manifest.AsError(nil); err != nil {
		t.Errorf("no problems give %v", err)
	}
	a := manifest.Problem{File: "a.yaml", Document: 2, Object: "Pod x", Rule: "V1", Message: "it is wrong", Remedy: "correct it"}
	b := manifest.Problem{File: "a.yaml", Document: 10, Message: "late"}
	c := manifest.Problem{Message: "of the bundle"}
	err := manifest.AsError([]manifest.Problem{b, a, c, a})
	want := "of the bundle\na.yaml (document 2): Pod x: it is wrong; correct it [V1]\na.yaml (document 10): late"
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestErrorIsBounded: a thousand problems are enough to read.
func TestErrorIsBounded(t *testing.T) {
	var problems []manifest.Problem
	for i := range 1500 {
		problems = append(problems, manifest.Problem{Document: i, Message: "wrong"})
	}
	var refused *manifest.Error
	if !errors.As(manifest.AsError(problems), &refused) || len(refused.Problems) != 1001 || refused.Problems[1000].Message != "there are 500 more problems" {
		t.Errorf("%d problems, the last is %v", len(refused.Problems), refused.Problems[len(refused.Problems)-1])
	}
}

// TestLimitFlags: each limit is a flag with the documented default.
func TestLimitFlags(t *testing.T) {
	l := manifest.DefaultLimits()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	l.BindFlags(flags)
	args := []string{"--limit-manifest-bytes=1", "--limit-manifests-bytes=2", "--limit-manifest-documents=3", "--limit-objects=4", "--limit-manifest-depth=5", "--limit-manifest-values=6", "--limit-object-bytes=7"}
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(manifest.Limits{FileBytes: 1, TotalBytes: 2, Documents: 3, Objects: 4, Depth: 5, Values: 6, ObjectBytes: 7}, l); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(manifest.Limits{FileBytes: 8 << 20, TotalBytes: 16 << 20, ObjectBytes: 1536 << 10, Documents: 100_000, Objects: 25_000, Depth: 100, Values: 1_000_000}, manifest.Limits{}.OrDefault()); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
}
