// SPDX-License-Identifier: Apache-2.0

// Package formats compares what is stored with the version of its format. Each package that stores something has a test that gives an
// example with all fields to Golden.
package formats

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/satchel-dev/satchel/internal/format"
)

// Folder is the folder of the examples below the testdata of a package.
const Folder = "formats"

// Name is the file with the example of a format, in each package that has one.
func Name(f format.Format) string { return filepath.Join("testdata", Folder, f.Kind+"."+version(f)) }

// Golden wants an example of stored content to be as it was when its format got its version. It writes the file of a version
// that has none yet, fails then, and never replaces one.
func Golden(t *testing.T, f format.Format, example []byte) {
	t.Helper()
	name := Name(f)
	want, err := os.ReadFile(name)
	if os.IsNotExist(err) {
		err = errors.Join(os.MkdirAll(filepath.Dir(name), 0o750), os.WriteFile(name, example, 0o600))
		t.Fatalf("there was no example of %s: it was written to %s (%v). Commit it in place of that of the former version", f, name, err)
	}
	switch {
	case err != nil:
		t.Fatal(err)
	case !bytes.Equal(want, example):
		t.Errorf("what is stored is another format, with the same version. A controller of another version would take it for its own: raise the version of %q in internal/format/table.go, and run this test again.\nwas: %q\nis:  %q",
			f.Kind, short(want), short(example))
	}
}

// version is the version of a format as text.
func version(f format.Format) string {
	return f.Name()[len(f.Kind)+1:]
}

// short bounds what is shown.
func short(content []byte) []byte { return content[:min(len(content), 2000)] }
