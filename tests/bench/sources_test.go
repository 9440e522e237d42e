// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bench

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/crane"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/parallel"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/images"
	"github.com/satchel-dev/satchel/tests/installation"
)

const sourceController = "bundle-source-controller"

// sources starts the source controller, and returns a rig that measures it.
func (r *rig) sources(b *testing.B) *rig {
	b.Helper()
	dir := b.TempDir()
	build := exec.CommandContext(b.Context(), "go", "build", "-o", dir+"/", "./cmd/"+sourceController)
	build.Dir = installation.Root()
	if output, err := build.CombinedOutput(); err != nil {
		b.Fatalf("building the controller: %v\n%s", err, output)
	}
	config, err := installation.AccountConfig(b.Context(), r.cp.RESTConfig(), installation.Namespace, sourceController)
	if err != nil {
		b.Fatal(err)
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := writeKubeconfig(config, kubeconfig); err != nil {
		b.Fatal(err)
	}
	address, err := controlplane.FreeAddress()
	if err != nil {
		b.Fatal(err)
	}
	sources := *r
	if sources.profiles, err = profilesAddress(); err != nil {
		b.Fatal(err)
	}
	sources.user = "system:serviceaccount:" + installation.Namespace + ":" + sourceController
	sources.controller = exec.Command(filepath.Join(dir, sourceController), "--kubeconfig="+kubeconfig,
		"--storage-path="+filepath.Join(dir, "data"), "--storage-addr="+address, "--storage-adv-addr="+address, "--upload-addr=",
		"--egress-allow=127.0.0.0/8", "--insecure-hosts=127.0.0.1", "--max-download-bytes=1073741824", "--max-extracted-bytes=1073741824", "--metrics-addr=0", "--health-addr=0", "--log-level=error",
		"--pprof-addr="+cmp.Or(sources.profiles, "0"))
	sources.controller.Stderr = os.Stderr
	sources.controller.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := sources.controller.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = sources.controller.Process.Kill()
		_ = sources.controller.Wait() // it was killed
	})
	return &sources
}

// sourceOf is a BundleSource of an image.
func sourceOf(namespace, name, ref string) *v1alpha1.BundleSource {
	source := &v1alpha1.BundleSource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	source.Spec.Interval = v1alpha1.Duration{Duration: time.Hour}
	source.Spec.Sources = []v1alpha1.Source{{Image: &v1alpha1.ImageSource{Reference: ref, Insecure: true}}}
	return source
}

// waitSources waits until all sources of a namespace are Ready.
func (r *rig) waitSources(b *testing.B, namespace string, count int) {
	b.Helper()
	r.follow(b, &v1alpha1.BundleSourceList{}, namespace, count, func(o client.Object) bool {
		source, ok := o.(*v1alpha1.BundleSource)
		return ok && conditions.IsTrue(source, meta.ReadyCondition)
	})
}

// BenchmarkSources is 100 and 500 sources of small images, created at once.
func BenchmarkSources(b *testing.B) {
	r := newRig(b).sources(b)
	repository := images.New(b, true)
	for _, count := range sizes(100, 500) {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			for range b.N {
				namespace := r.namespace(b)
				all := make([]*v1alpha1.BundleSource, 0, count)
				for i := range count {
					digest := repository.Push(b, imageOf(b, manifestLayer(fmt.Sprint(count, "-", i))))
					all = append(all, sourceOf(namespace, fmt.Sprintf("s%03d", i), digest.Name()))
				}
				warm := sourceOf(r.namespace(b), "first", all[0].Spec.Sources[0].Image.Reference)
				r.create(b, []*v1alpha1.BundleSource{warm})
				r.waitSources(b, warm.Namespace, 1)
				measured := r.measure(b, "from create until all are Ready", func() {
					r.create(b, all)
					r.waitSources(b, namespace, count)
				})
				printTable(b, fmt.Sprintf("%d sources of small images", count), []row{measured})
				b.ReportMetric(1000*measured.cpu/float64(count), "cpu-ms/source")
				b.ReportMetric(float64(measured.requests.all())/float64(count), "requests/source")
				b.ReportMetric(measured.peak, "MiB")
			}
		})
	}
}

func (r *rig) create(b *testing.B, sources []*v1alpha1.BundleSource) {
	b.Helper()
	err := errors.Join(parallel.Each(b.Context(), atOnce, sources, func(ctx context.Context, source *v1alpha1.BundleSource) error {
		return r.admin.Create(ctx, source)
	})...)
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkLargeImage is a source of an image with 30 MiB, and with 300 MiB, beside `crane export` of the same image.
func BenchmarkLargeImage(b *testing.B) {
	r := newRig(b).sources(b)
	repository := images.New(b, true)
	for _, size := range sizes(30, 300) {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			for range b.N {
				image := imageOf(b, largeLayer(size<<20/3, 1), largeLayer(size<<20/3, 2), largeLayer(size<<20/3, 3))
				digest := repository.Push(b, image)
				began := time.Now()
				exported := export(b, digest)
				bare := row{what: "crane export", took: time.Since(began)}
				namespace := r.namespace(b)
				measured := r.measure(b, "BundleSource, from create to Ready", func() {
					r.create(b, []*v1alpha1.BundleSource{sourceOf(namespace, "large", digest.Name())})
					r.waitSources(b, namespace, 1)
				})
				printTable(b, fmt.Sprintf("an image of %d MiB, %d MiB when unpacked", size, exported>>20), []row{bare, measured})
				b.ReportMetric(measured.took.Seconds()/bare.took.Seconds(), "x-crane")
				b.ReportMetric(measured.cpu, "cpu-s")
				b.ReportMetric(measured.peak, "MiB")
			}
		})
	}
}

// export writes the files of an image to a file, as `crane export` does, and returns how many bytes that are.
func export(b *testing.B, digest name.Digest) int64 {
	b.Helper()
	pulled, err := crane.Pull(digest.Name(), crane.Insecure)
	if err != nil {
		b.Fatal(err)
	}
	file, err := os.Create(filepath.Join(b.TempDir(), "export"))
	if err != nil {
		b.Fatal(err)
	}
	if err := errors.Join(crane.Export(pulled, file), file.Sync()); err != nil {
		b.Fatal(err)
	}
	info, err := file.Stat()
	if err := errors.Join(err, file.Close()); err != nil {
		b.Fatal(err)
	}
	return info.Size()
}

// imageOf is an image of layers that are compressed with gzip.
func imageOf(b *testing.B, layers ...func() (io.ReadCloser, error)) v1.Image {
	b.Helper()
	image := empty.Image
	for _, open := range layers {
		layer, err := tarball.LayerFromOpener(open, tarball.WithCompressionLevel(1))
		if err != nil {
			b.Fatal(err)
		}
		if image, err = mutate.AppendLayers(image, layer); err != nil {
			b.Fatal(err)
		}
	}
	return image
}

// manifestLayer is a layer with one manifest.
func manifestLayer(name string) func() (io.ReadCloser, error) {
	text := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%s}\n", name)
	return func() (io.ReadCloser, error) {
		var layer bytes.Buffer
		writer := tar.NewWriter(&layer)
		err := writer.WriteHeader(&tar.Header{Name: "manifests/map.yaml", Mode: 0o644, Size: int64(len(text))})
		_, written := io.WriteString(writer, text)
		return io.NopCloser(&layer), errors.Join(err, written, writer.Close())
	}
}

// largeLayer is a layer with files of 1 MiB, of which gzip removes about half.
func largeLayer(size int, seed uint64) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) {
		reader, writer := io.Pipe()
		go func() {
			source := rand.New(rand.NewPCG(seed, 1))
			files := tar.NewWriter(writer)
			var err error
			for i := 0; i < size>>19 && err == nil; i++ {
				content := strings.Repeat(fmt.Sprintf("%016x", source.Uint64()), 4)
				block := make([]byte, 0, 1<<20)
				for len(block) < 1<<20 {
					block = fmt.Appendf(block, "%016x%s\n", source.Uint64(), content[:15])
				}
				err = files.WriteHeader(&tar.Header{Name: fmt.Sprintf("manifests/%d-%04d.txt", seed, i), Mode: 0o644, Size: 1 << 20})
				if err == nil {
					_, err = files.Write(block[:1<<20])
				}
			}
			writer.CloseWithError(errors.Join(err, files.Close()))
		}()
		return reader, nil
	}
}
