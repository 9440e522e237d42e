// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	gogit "github.com/go-git/go-git/v5"

	"github.com/satchel-dev/satchel/tests/upstream"
)

func TestGitServesItsCommits(t *testing.T) {
	server, err := upstream.NewGit()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	for _, content := range []string{"one", "two"} {
		if _, err := server.Commit("commit "+content, fstest.MapFS{"a/file": {Data: []byte(content)}}); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if _, err := gogit.PlainClone(dir, false, &gogit.CloneOptions{URL: server.URL()}); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(dir, "a/file"))
		if err != nil || string(got) != content {
			t.Errorf("cloned %q (%v), want %q", got, err, content)
		}
	}
}
