// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/ignore"
)

func canonical(t *testing.T, tree fs.FS) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := artifact.WriteCanonical(t.Context(), &out, tree); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// withLinks is a tree that lacks some files.
type withLinks struct {
	fs.FS
	links []string
}

func (w withLinks) LeftOut() []string { return w.links }

// TestF54CanonicalTarNamesLeftOut: what an archive lacks is named in it, and known again by who unpacks it; a tree that lacks nothing
// has the same archive as before.
func TestF54CanonicalTarNamesLeftOut(t *testing.T) {
	files := fstest.MapFS{"a.yaml": {Data: []byte("a")}, "app/b.yaml": {Data: []byte("b")}}
	plain := canonical(t, files)
	if !bytes.Equal(plain, canonical(t, withLinks{files, nil})) {
		t.Error("a tree that lacks nothing has another archive")
	}
	links := []string{"app/c.yaml", "docs"}
	archive := canonical(t, withLinks{files, links})
	tree, err := fetch.NewTree(t.TempDir(), fetch.DefaultLimits())
	if err == nil {
		err = tree.Untar(t.Context(), bytes.NewReader(archive))
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(links, tree.LeftOut()); diff != "" {
		t.Error(diff)
	}
	if !bytes.Equal(archive, canonical(t, tree.FS())) {
		t.Error("packing what was unpacked gives another archive")
	}
	ignored, err := ignore.FS(tree.FS(), "/docs/")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(canonical(t, withLinks{files, links[:1]}), canonical(t, ignored)); diff != "" {
		t.Errorf("what is ignored on purpose is named: %s", diff)
	}
}

func TestCanonicalTarListing(t *testing.T) {
	long := strings.Repeat("d/", 60) + strings.Repeat("n", 120)
	tree := files(map[string]string{"z": "1", "a/b/c": "22", "a-b": "", "a/z": "4", "b/x": "5", "über": "6", long: "7"})
	tree["empty"] = &fstest.MapFile{Mode: fs.ModeDir | 0o700}
	tree["z"].Mode = 0o4777
	tree["z"].ModTime = time.Now()
	var got []string
	archive := tar.NewReader(bytes.NewReader(canonical(t, tree)))
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%o %d/%d%s %d %d %s",
			header.Mode, header.Uid, header.Gid, header.Uname+header.Gname, header.ModTime.Unix(), header.Size, header.Name))
	}
	want := []string{
		"644 0/0 0 0 a-b", "755 0/0 0 0 a/", "755 0/0 0 0 a/b/", "644 0/0 0 2 a/b/c", "644 0/0 0 1 a/z",
		"755 0/0 0 0 b/", "644 0/0 0 1 b/x",
	}
	for i := range 60 {
		want = append(want, "755 0/0 0 0 "+strings.Repeat("d/", i+1))
	}
	want = append(want, "644 0/0 0 1 "+long, "644 0/0 0 1 z", "644 0/0 0 1 über")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The identity is in every revision: a new Go version or a new compressor must not move it.
func TestCanonicalTarDigestIsForever(t *testing.T) {
	tree := files(map[string]string{
		"manifests/csv.yaml": "kind: ClusterServiceVersion\n", "metadata/annotations.yaml": "annotations: {}\n",
		strings.Repeat("deep/", 30) + "ü": "long and not ASCII",
	})
	const want = "sha256:c4f33d6ba6c281174e1f4982572b2a70f8be509a7f312828337ee35a95e8f487"
	if got := digestOf(canonical(t, tree)); got != want {
		t.Errorf("the digest is %s where it was %s", got, want)
	}
}

func TestCanonicalTarRefusesWhatIsNoFile(t *testing.T) {
	for _, mode := range []fs.FileMode{fs.ModeSymlink, fs.ModeNamedPipe, fs.ModeDevice, fs.ModeSocket, fs.ModeIrregular} {
		tree := fstest.MapFS{"a": {Mode: mode}}
		if err := artifact.WriteCanonical(t.Context(), io.Discard, tree); err == nil {
			t.Errorf("%v was accepted", mode)
		}
	}
	dir := t.TempDir()
	err := errors.Join(os.WriteFile(filepath.Join(dir, "a"), nil, 0o600), os.Symlink("a", filepath.Join(dir, "b")))
	if err != nil {
		t.Fatal(err)
	}
	if err := artifact.WriteCanonical(t.Context(), io.Discard, os.DirFS(dir)); err == nil {
		t.Error("a link to a file was accepted")
	}
}

func TestCanonicalTarEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	err := artifact.WriteCanonical(ctx, io.Discard, cancellingFS{noise(1, 1<<20), cancel})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
}

// TestCanonicalTarProperty packs the same small trees with other modes and times, listed in another order; each fifth one
// from disk, written in another order, with another owner and umask.
func TestCanonicalTarProperty(t *testing.T) {
	base := t.TempDir()
	defer syscall.Umask(syscall.Umask(0))
	for seed := range uint64(1000) {
		random := rand.New(rand.NewPCG(seed, 1))
		contents := randomTree(random)
		want := digestOf(canonical(t, files(contents)))
		tree := disorderly(random, contents)
		if seed%5 == 0 || full() {
			dir := filepath.Join(base, fmt.Sprint(seed))
			scatter(t, random, dir, contents)
			tree = os.DirFS(dir)
		}
		if got := digestOf(canonical(t, tree)); got != want {
			t.Fatalf("seed %d: the digest is %s where it was %s; tree %v", seed, got, want, contents)
		}
	}
}

// disorderly returns a tree with random attributes that lists its folders backwards.
func disorderly(random *rand.Rand, contents map[string]string) fs.FS {
	tree := files(contents)
	for _, file := range tree {
		file.Mode = fs.FileMode(random.IntN(0o1000))
		file.ModTime = time.Unix(random.Int64N(7e9), random.Int64N(1e9))
	}
	tree["dempty"] = &fstest.MapFile{Mode: fs.ModeDir}
	return backwards{tree}
}

type backwards struct{ fstest.MapFS }

func (b backwards) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := b.MapFS.ReadDir(name)
	slices.Reverse(entries)
	return entries, err
}

// randomTree has one to seven files in folders that share beginnings of names.
func randomTree(random *rand.Rand) map[string]string {
	parts := []string{"a", "a.b", "a-b", "b", "B", "manifests", "ü"}
	contents := map[string]string{}
	for range 1 + random.IntN(7) {
		folder := "d" + parts[random.IntN(len(parts))]
		if random.IntN(2) == 0 {
			folder += "/d" + parts[random.IntN(len(parts))]
		}
		contents[path.Join(folder, parts[random.IntN(len(parts))])] = strings.Repeat("x", random.IntN(600))
	}
	return contents
}

// scatter writes files in random order with random attributes, and folders that nothing needs.
func scatter(t *testing.T, random *rand.Rand, dir string, contents map[string]string) {
	t.Helper()
	syscall.Umask(random.IntN(2) * 0o027)
	names := slices.Sorted(maps.Keys(contents))
	random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range append(names, "dempty/x") {
		file := filepath.Join(dir, name)
		when := time.Unix(random.Int64N(7e9), random.Int64N(1e9))
		err := os.MkdirAll(filepath.Dir(file), 0o700+fs.FileMode(random.IntN(0o100)))
		if content, ok := contents[name]; ok && err == nil {
			err = os.WriteFile(file, []byte(content), 0o400+fs.FileMode(random.IntN(0o400)))
		}
		if err == nil {
			_ = os.Chtimes(filepath.Dir(file), when, when)
			_ = os.Chtimes(file, when, when)
		}
		if os.Getuid() == 0 && err == nil {
			_ = os.Lchown(file, random.IntN(1000), random.IntN(1000))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// FuzzCanonicalTarRoundTrip reads what was packed: the same files, and the same bytes when packed again.
func FuzzCanonicalTarRoundTrip(f *testing.F) {
	f.Add("a", "b/c", "content", uint16(3))
	f.Add("a/b", "a.b", "", uint16(513))
	f.Add(strings.Repeat("long/", 50)+"x", "ü/\u202e", "\x00", uint16(0))
	f.Fuzz(func(t *testing.T, first, second, content string, size uint16) {
		if !packable(first, second) {
			return
		}
		packed := canonical(t, files(map[string]string{first: content, second: strings.Repeat("x", int(size))}))
		copied := readTar(t, packed)
		if len(copied) != 2 || string(copied[first].Data) != content || len(copied[second].Data) != int(size) {
			t.Fatalf("other files came back: %v", slices.Sorted(maps.Keys(copied)))
		}
		if !bytes.Equal(packed, canonical(t, copied)) {
			t.Error("packing again gives other bytes")
		}
	})
}

// packable tells whether a tree can have files of both names, and a tar can name them.
func packable(first, second string) bool {
	both := first + second
	return fs.ValidPath(first) && fs.ValidPath(second) && first != "." && second != "." && !strings.Contains(both, "\x00") &&
		!strings.HasPrefix(first+"/", second+"/") && !strings.HasPrefix(second+"/", first+"/")
}

// readTar returns the files of an archive.
func readTar(t *testing.T, packed []byte) fstest.MapFS {
	t.Helper()
	tree := fstest.MapFS{}
	archive := tar.NewReader(bytes.NewReader(packed))
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return tree
		}
		if err != nil {
			t.Fatalf("what was packed cannot be read: %v", err)
		}
		data, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg {
			tree[header.Name] = &fstest.MapFile{Data: data}
		}
	}
}
