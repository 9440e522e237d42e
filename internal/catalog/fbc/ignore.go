// SPDX-License-Identifier: Apache-2.0

package fbc

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
)

// readIgnore reads the files .indexignore of a folder and returns which paths they leave out. operator-registry uses
// the same library for them: other than in Git, a pattern with ! takes back in what lies below an ignored folder.
func readIgnore(files fs.FS, root string) (func(string) bool, error) {
	var patterns []gitignore.Pattern
	size := 0
	err := fs.WalkDir(files, root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() != indexIgnore || name == root {
			return err
		}
		text, err := readBounded(files, name, mostIgnoreBytes-size)
		if err != nil {
			return fmt.Errorf("%s: %w", name, withoutPath(err))
		}
		size += len(text)
		patterns = append(patterns, parseIgnore(text, below(root, path.Dir(name)))...)
		if len(patterns) > mostIgnorePatterns {
			return fmt.Errorf("%s: %w", name, &LimitError{What: "patterns", Most: mostIgnorePatterns})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	matcher := gitignore.NewMatcher(patterns)
	return func(name string) bool { return matcher.Match(below(root, name), false) }, nil
}

// parseIgnore reads the patterns of one file, which are about the folder of the file.
func parseIgnore(text string, folder []string) []gitignore.Pattern {
	var patterns []gitignore.Pattern
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		patterns = append(patterns, gitignore.ParsePattern(line, folder))
	}
	return patterns
}

// below are the parts of a path below the root.
func below(root, name string) []string {
	if root != "." {
		name = strings.TrimPrefix(strings.TrimPrefix(name, root), "/")
	}
	if name == "" || name == "." {
		return nil
	}
	return strings.Split(name, "/")
}

// readBounded reads a small file.
func readBounded(files fs.FS, name string, most int) (_ string, err error) {
	file, err := files.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	text, err := io.ReadAll(io.LimitReader(file, int64(most)+1))
	if err == nil && len(text) > most {
		err = &LimitError{What: "bytes of all files " + indexIgnore, Most: mostIgnoreBytes}
	}
	return string(text), err
}
