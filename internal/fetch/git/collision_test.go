// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"crypto/sha1"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

// TestM17CollisionsOfSHA1 has the hash of objects recognise what was made to collide: it then has another value than
// SHA-1, so that no object is found by it.
func TestM17CollisionsOfSHA1(t *testing.T) {
	hasher := plumbing.NewHasher(plumbing.BlobObject, 0)
	if _, ok := hasher.Hash.(interface {
		CollisionResistantSum(in []byte) ([]byte, bool)
	}); !ok {
		t.Fatalf("%T does not recognise collisions", hasher.Hash)
	}
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/pjbgf/sha1cd").Output()
	if err != nil {
		t.Skipf("go list does not work here: %v", err)
	}
	var sums [][]byte
	for _, name := range []string{"shattered-1.pdf", "shattered-2.pdf"} {
		data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "test", "testdata", "files", name))
		if err != nil {
			t.Skipf("the files with the published collision are not there: %v", err)
		}
		hasher.Reset()
		_, _ = hasher.Write(data)
		sum := hasher.Hash.Sum(nil)
		if plain := sha1.Sum(data); bytes.Equal(plain[:], sum) {
			t.Errorf("%s has its usual sum %x", name, sum)
		}
		sums = append(sums, sum)
	}
	if bytes.Equal(sums[0], sums[1]) {
		t.Error("two files have the same sum")
	}
}
