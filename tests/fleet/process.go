// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/satchel-dev/satchel/tests/installation"
)

// Process is a controller.
type Process struct {
	Name string
	Log  string
	// Metrics is the address on loopback on which it serves metrics.
	Metrics string
	path    string
	args    []string
	command *exec.Cmd
	log     *os.File
}

// patience is how long a process may take to end after SIGTERM.
const patience = 15 * time.Second

// startProcess starts a controller with the permissions of its ServiceAccount. It ends with ctx.
func startProcess(ctx context.Context, admin *rest.Config, dir, bin, name string, args ...string) (*Process, error) {
	kubeconfig := filepath.Join(dir, name+".kubeconfig")
	config, err := installation.AccountConfig(ctx, admin, installation.Namespace, name)
	if err != nil {
		return nil, err
	}
	if err := writeKubeconfig(kubeconfig, config); err != nil {
		return nil, err
	}
	p := &Process{Name: name, Log: filepath.Join(dir, name+".log")}
	if p.log, err = os.Create(p.Log); err != nil {
		return nil, fmt.Errorf("creating the log of %s: %w", name, err)
	}
	if p.Metrics, err = freeAddress(ctx); err != nil {
		return nil, err
	}
	p.path = filepath.Join(bin, name)
	p.args = append([]string{"--kubeconfig", kubeconfig, "--namespace", installation.Namespace, "--metrics-addr", p.Metrics, "--health-addr", "0"}, args...)
	return p, p.run(ctx)
}

// run starts the program.
func (p *Process) run(ctx context.Context) error {
	p.command = exec.CommandContext(ctx, p.path, p.args...)
	p.command.Stdout, p.command.Stderr = p.log, p.log
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	p.command.Cancel = func() error { return p.command.Process.Signal(syscall.SIGTERM) }
	p.command.WaitDelay = patience
	if err := p.command.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", p.Name, err)
	}
	return nil
}

// Kill ends it by SIGKILL, and starts it again.
func (p *Process) Kill(ctx context.Context) error {
	if err := p.command.Process.Kill(); err != nil {
		return fmt.Errorf("killing %s: %w", p.Name, err)
	}
	_ = p.command.Wait() // it was killed
	return p.run(ctx)
}

func writeKubeconfig(path string, config *rest.Config) error {
	if err := rest.LoadTLSFiles(config); err != nil {
		return fmt.Errorf("reading the certificate of the API server's authority: %w", err)
	}
	file := clientcmdapi.NewConfig()
	file.Clusters["c"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	file.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: config.BearerToken}
	file.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	file.CurrentContext = "x"
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// stop ends it.
func (p *Process) stop() {
	_ = p.command.Process.Signal(syscall.SIGTERM)
	killed := time.AfterFunc(patience, func() { _ = p.command.Process.Kill() })
	_ = p.command.Wait() // how it ends is in its log
	killed.Stop()
	_ = p.log.Close()
}

// PeakMiB is the largest resident memory of the process itself so far, without its worker processes.
func (p *Process) PeakMiB() (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.command.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("reading the memory of %s: %w", p.Name, err)
	}
	_, peak, found := strings.Cut(string(status), "VmHWM:")
	if !found {
		return 0, fmt.Errorf("the memory of %s is not known", p.Name)
	}
	kib, err := strconv.ParseFloat(strings.Fields(peak)[0], 64)
	return kib / 1024, err
}
