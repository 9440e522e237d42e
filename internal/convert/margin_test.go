// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// TestM8PublishedBundlesHaveFewValues: a tenth of the budget of values is enough for every published bundle.
func TestM8PublishedBundlesHaveFewValues(t *testing.T) {
	tenth := manifest.DefaultLimits()
	tenth.Values /= 10
	bundles := 0
	err := filepath.WalkDir(corpus(t), func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() || entry.Name() != "manifests" {
			return err
		}
		bundles++
		files, err := os.ReadDir(name)
		reader := manifest.NewReader(os.DirFS(name), tenth)
		for _, file := range files {
			if manifest.Named(file.Name()) {
				reader.Read(file.Name())
			}
		}
		for _, p := range reader.Problems() {
			if p.Rule == manifest.RuleLimit {
				t.Errorf("%s: %s", name, p)
			}
		}
		return err
	})
	if err != nil || bundles == 0 {
		t.Errorf("%d bundles, %v", bundles, err)
	}
}
