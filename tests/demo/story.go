// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	gogit "github.com/go-git/go-git/v5"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/upstream"
)

const systemNamespace = "satchel-system"

// installSatchel applies config/default and starts both controllers beside the cluster.
func (d *demo) installSatchel(ctx context.Context) error {
	d.chapterf("Install Satchel: config/default, and both controllers as processes on this machine")
	objects, err := installation(filepath.Join(d.repo, "config", "default"))
	if err != nil {
		return err
	}
	if d.kubeconfig != "" {
		if err := d.announce(ctx, objects); err != nil {
			return err
		}
	}
	if err := d.cluster.apply(ctx, objects); err != nil {
		return err
	}
	if d.kubeconfig != "" {
		d.onCleanUp(func(ctx context.Context) error { return d.cluster.remove(ctx, objects) })
	}
	d.sayf("Applied %d objects: CRDs, RBAC, and the namespace %s.", len(objects), systemNamespace)
	if err := d.startUpstreams(ctx); err != nil {
		return err
	}
	return d.startControllers(ctx)
}

// announce says what will be created on an existing cluster, and refuses to touch existing objects.
func (d *demo) announce(ctx context.Context, objects []*unstructured.Unstructured) error {
	samples, err := decodeFolder(os.DirFS(d.repo), samplesFolder)
	if err != nil {
		return err
	}
	samples = append(samples, object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "greetings.samples.satchel.dev"))
	var names []string
	for _, o := range append(objects, samples...) {
		if o.GetKind() != "Kustomization" {
			names = append(names, describe(o))
		}
	}
	d.sayf("This creates, and removes in the end:")
	d.text(strings.Join(names, "\n"))
	found, err := d.cluster.existing(ctx, append(objects, object("v1", "Namespace", "", samplesNamespace), samples[len(samples)-1]))
	if err != nil {
		return err
	}
	if found != "" {
		return fmt.Errorf("%s exists already on this cluster; the demo does not touch what it did not create: remove it, or use another cluster", found)
	}
	return nil
}

// startUpstreams starts the registry and the Git server.
func (d *demo) startUpstreams(ctx context.Context) error {
	d.registry = upstream.NewRegistry(ctx)
	d.onCleanUp(func(context.Context) error { d.registry.Close(); return nil })
	var err error
	if d.git, err = upstream.NewGit(); err != nil {
		return err
	}
	d.onCleanUp(func(context.Context) error { return d.git.Close() })
	d.sayf("A registry (CNCF Distribution) listens on %s, a Git server on %s.", d.registry.Host(), d.git.URL())
	return nil
}

// startControllers starts both, each with the permissions of its ServiceAccount, and waits until they are ready.
func (d *demo) startControllers(ctx context.Context) error {
	ports, err := freePorts(4)
	if err != nil {
		return err
	}
	artifacts, gitHost := ports[0], strings.TrimSuffix(strings.TrimPrefix(d.git.URL(), "http://"), "/fleet.git")
	programs := []program{
		d.controller("bundle-source-controller", ports[1],
			"--storage-path", filepath.Join(d.dir, "data"), "--storage-addr", artifacts, "--storage-adv-addr", artifacts, "--upload-addr", ports[3],
			"--egress-allow", "127.0.0.1/32", "--insecure-hosts", d.registry.Host()+","+gitHost),
		d.controller("bundle-deployment-controller", ports[2],
			"--cache-path", filepath.Join(d.dir, "cache"), "--artifact-servers", "http://"+artifacts),
	}
	for _, p := range programs {
		if err := accountKubeconfig(ctx, d.cluster.config, systemNamespace, p.Name, d.file(p.Name+".kubeconfig")); err != nil {
			return err
		}
	}
	for _, folder := range []string{"data", "cache"} {
		if err := os.Mkdir(d.file(folder), 0o700); err != nil {
			return err
		}
	}
	if d.controllers, err = startGuard(d.file("guard.json"), guardSpec{Programs: programs}); err != nil {
		return err
	}
	d.onCleanUp(func(context.Context) error { return d.controllers.stop() })
	for i, p := range programs {
		if err := d.await(ctx, p.Name+" to become ready", readiness(ports[1+i])); err != nil {
			return err
		}
		d.sayf("%s runs, with the permissions of the ServiceAccount %s/%s; its log is %s", p.Name, systemNamespace, p.Name, p.Log)
	}
	return nil
}

// controller describes a controller's process.
func (d *demo) controller(name, health string, args ...string) program {
	return program{Name: name, Path: d.bin(name), Log: d.file(name + ".log"), Args: append([]string{
		"--kubeconfig", d.file(name + ".kubeconfig"), "--namespace", systemNamespace,
		"--metrics-addr", "0", "--health-addr", health,
	}, args...)}
}

// file is a path in the demo's folder.
func (d *demo) file(name string) string { return filepath.Join(d.dir, name) }

// readiness checks the probe of a controller.
func readiness(address string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
		if err != nil {
			return "", err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return "it does not answer yet", nil
		}
		defer func() { _ = response.Body.Close() }()
		if response.StatusCode != http.StatusOK {
			return "its probe answers " + response.Status, nil
		}
		return "", nil
	}
}

// freePorts returns addresses on loopback on which nothing listens.
func freePorts(count int) ([]string, error) {
	var addresses []string
	for range count {
		address, err := controlplane.FreeAddress()
		if err != nil {
			return nil, err
		}
		addresses = append(addresses, address)
	}
	return addresses, nil
}

// publish pushes both versions of the operator and commits the first version's manifests.
func (d *demo) publish(ctx context.Context) error {
	d.chapterf("Publish: an operator bundle in the registry, manifests and a plain bundle in Git")
	for _, version := range []string{"v0.1.0", "v0.2.0"} {
		bundle := os.DirFS(filepath.Join(d.repo, "tests", "bundles", operatorName, version))
		manifests, err := layer(bundle, "manifests")
		if err != nil {
			return err
		}
		metadata, err := layer(bundle, "metadata")
		if err != nil {
			return err
		}
		digest, err := d.registry.Push(ctx, "bundles/"+operatorName+":"+version, manifests, metadata)
		if err != nil {
			return err
		}
		d.sayf("Pushed bundles/%s:%s, two layers, %s", operatorName, version, shorten(digest))
	}
	return d.commit("Install the samples", "v0.1.0")
}

// layer is the part of a bundle that lies in one folder.
func layer(bundle fs.FS, folder string) (fs.FS, error) {
	files, err := subtree(bundle, folder)
	if err != nil {
		return nil, fmt.Errorf("reading the sample bundle: %w", err)
	}
	return files, nil
}

// commit puts the manifests, with the given version of the operator, on the branch main.
func (d *demo) commit(message, version string) error {
	tree, err := d.upstreams().tree(os.DirFS(d.repo), version)
	if err != nil {
		return err
	}
	hash, err := d.git.Commit(message, tree)
	if err != nil {
		return err
	}
	d.sayf("Committed %q as %s, with %s %s.", message, hash[:12], operatorName, version)
	return nil
}

func (d *demo) upstreams() upstreams {
	return upstreams{registry: d.registry.Host(), git: d.git.URL()}
}

// pull brings the clone to the head of main and applies the manifests in it, as a GitOps tool would.
func (d *demo) pull(ctx context.Context) error {
	clone := d.file("clone")
	repository, err := gogit.PlainOpen(clone)
	if errors.Is(err, gogit.ErrRepositoryNotExists) {
		repository, err = gogit.PlainCloneContext(ctx, clone, false, &gogit.CloneOptions{URL: d.git.URL()})
	}
	if err != nil {
		return fmt.Errorf("cloning %s: %w", d.git.URL(), err)
	}
	work, err := repository.Worktree()
	if err != nil {
		return err
	}
	if err := work.PullContext(ctx, &gogit.PullOptions{}); err != nil && !errors.Is(err, gogit.NoErrAlreadyUpToDate) {
		return fmt.Errorf("pulling %s: %w", d.git.URL(), err)
	}
	objects, err := decodeFolder(os.DirFS(clone), fleet)
	if err != nil {
		return err
	}
	if err := d.cluster.apply(ctx, objects); err != nil {
		return err
	}
	d.applied = objects
	d.sayf("Pulled main and applied the %d objects in %s/, as a GitOps tool would.", len(objects), fleet)
	return nil
}

// showCommands runs what a user would run to look.
func (d *demo) showCommands(ctx context.Context) error {
	d.chapterf("Look at it with the CLI")
	for _, args := range [][]string{
		{"get", "-n", samplesNamespace}, {"status", operatorName, "-n", samplesNamespace},
	} {
		command := exec.CommandContext(ctx, d.bin("satchel"), args...)
		command.Env = append(os.Environ(), "KUBECONFIG="+d.cluster.kubeconfig)
		out, err := command.CombinedOutput()
		d.sayf("$ satchel %s", strings.Join(args, " "))
		d.text(string(out))
		if err != nil {
			return fmt.Errorf("running satchel %s: %w", strings.Join(args, " "), err)
		}
	}
	return nil
}

// inviteToLook says how to look further, and that Ctrl-C ends.
func (d *demo) inviteToLook() {
	d.chapterf("Look further; Ctrl-C ends the demo and leaves nothing behind")
	d.text(fmt.Sprintf(`In another terminal:
export KUBECONFIG=%s
export PATH=%s:$PATH

satchel get -n samples
satchel status sample-operator -n samples
kubectl get bundledeployments,bundlesources -A
kubectl -n samples describe bundledeployment greeter
kubectl -n samples delete deployment greeter        # comes back within %s
kubectl -n samples edit bundledeployment greeter    # or delete it, and see everything go

Logs of the controllers: %s`, d.cluster.kubeconfig, strings.Trim(d.cluster.binDir+":"+filepath.Join(d.repo, "bin"), ":"),
		demoInterval, filepath.Join(d.dir, "*.log")))
}
