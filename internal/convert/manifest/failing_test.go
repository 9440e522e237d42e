// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"errors"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// TestFilesThatCannotBeRead are problems, not surprises.
func TestFilesThatCannotBeRead(t *testing.T) {
	reader := manifest.NewReader(fstest.MapFS{"d/x.yaml": {}}, manifest.Limits{})
	reader.Read("missing.yaml")
	reader.Read("d")
	var got []string
	for _, p := range reader.Problems() {
		got = append(got, p.String())
	}
	want := []string{
		"missing.yaml: the file does not exist [file]",
		"d: this is not a regular file; replace it by one [file]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, problem := reader.ReadFile("missing.yaml", "P2"); problem == nil || problem.Rule != "P2" {
		t.Errorf("ReadFile of a missing file gives %v", problem)
	}
}

// failing is a file system of a broken disk.
type failing struct{}

func (failing) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: "/secret/place/" + name, Err: errors.New("input/output error")}
}

// TestDisksFail: a bundle that cannot be read now may be fine, and the machine's paths are not the bundle's.
func TestDisksFail(t *testing.T) {
	reader := manifest.NewReader(failing{}, manifest.Limits{})
	reader.Read("a.yaml")
	var refused *manifest.Error
	err := manifest.AsError(reader.Problems())
	if !errors.As(err, &refused) || refused.Permanent() || err.Error() != "a.yaml: reading fails: input/output error; it is tried again [read]" {
		t.Errorf("got %v", err)
	}
	if broken := manifest.AsError([]manifest.Problem{{Rule: manifest.RuleSyntax}}); !errors.As(broken, &refused) || !refused.Permanent() {
		t.Error("a syntax error is expected to go away")
	}
}
