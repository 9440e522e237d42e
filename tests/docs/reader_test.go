// SPDX-License-Identifier: Apache-2.0

//go:build linux

package docs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/satchel-dev/satchel/tests/docs/markdown"
	"github.com/satchel-dev/satchel/tests/installation"
)

// blockTimeout is how long the commands of a block may take.
const blockTimeout = 3 * time.Minute

// reader is a user who follows a page from its beginning to its end.
type reader struct {
	*rig
	home    string // an empty folder at first
	kind    string // of which the parts of objects are
	printed string // by the last block of commands
	tally   tally
}

// tally counts what became of the blocks of a page.
type tally struct {
	ran, checked, shown int // commands; manifests and output; blocks for people
	skipped             []string
}

func (t *tally) add(other tally) {
	t.ran += other.ran
	t.checked += other.checked
	t.shown += other.shown
	t.skipped = append(t.skipped, other.skipped...)
}

func (r *rig) read(t *testing.T, page markdown.Page) tally {
	t.Helper()
	p := &reader{rig: r, home: t.TempDir()}
	p.kind, _ = page.Mark("kind")
	timed := os.Getenv("SATCHEL_DOCS") != ""
	var all time.Duration
	for _, step := range page.Steps {
		began, ran := time.Now(), p.tally.ran
		if err := p.follow(t.Context(), step); err != nil {
			t.Errorf("%s: %v", step, err)
		}
		if took := time.Since(began); timed && p.tally.ran > ran {
			all += took
			t.Logf("%.1f s: %s", took.Seconds(), step.Text)
		}
	}
	if timed {
		t.Logf("all commands of %s: %.1f s", page.Name, all.Seconds())
	}
	return p.tally
}

// follow does what a block says.
func (p *reader) follow(ctx context.Context, step markdown.Step) error {
	if reason, skip := p.left(step); skip {
		if len(reason) < 10 {
			return fmt.Errorf("say why this block is left out")
		}
		p.tally.skipped = append(p.tally.skipped, fmt.Sprintf("%s: %s", step, reason))
		return nil
	}
	if name, given := step.Mark("file"); given {
		if err := p.save(name, step.Text); err != nil {
			return err
		}
	}
	switch {
	case step.Hidden:
		_, err := p.shell(ctx, step.Text, "0")
		return err
	case step.Language == "sh":
		return p.commands(ctx, step)
	case step.Language == "console":
		p.tally.ran++
		_, err := p.console(ctx, step.Text)
		return err
	case step.Language == "yaml":
		p.tally.checked++
		return p.manifest(ctx, step)
	case step.Language == "text":
		return p.text(step)
	case step.Language == "mermaid":
		p.tally.shown++
		return nil
	}
	return fmt.Errorf("a block is of sh, console, yaml, text or mermaid, not of %q", step.Language)
}

// left tells whether a block is left out, and why.
func (p *reader) left(step markdown.Step) (string, bool) {
	if reason, skip := step.Mark("skip"); skip {
		return reason, true
	}
	program, needed := step.Mark("needs")
	if !needed {
		return "", false
	}
	_, err := exec.LookPath(program)
	return "there is no " + program + " on this machine", err != nil
}

// save writes a file as the reader of the page would.
func (p *reader) save(name, text string) error {
	path := filepath.Join(p.home, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(p.names.Replace(text)), 0o600)
}

func (p *reader) commands(ctx context.Context, step markdown.Step) error {
	code := "0"
	if wanted, given := step.Mark("exit"); given {
		code, _, _ = strings.Cut(wanted, ",")
	}
	script := step.Text
	if allowed, given := step.Mark("may"); given {
		allowed, _, _ = strings.Cut(allowed, ",")
		script = "set +e; trap 'code=$?; [ $code = " + allowed + " ] || exit $code' ERR\n" + script + "true\n"
	}
	p.tally.ran++
	output, err := p.shell(ctx, script, code)
	p.printed = output
	return err
}

// text compares output, and leaves other text to people.
func (p *reader) text(step markdown.Step) error {
	if _, output := step.Mark("output"); !output {
		p.tally.shown++
		return nil
	}
	p.tally.checked++
	return printed(p.printed, step.Text)
}

// console runs commands one by one, and compares what each prints. It returns what it ought to look like.
func (p *reader) console(ctx context.Context, text string) (string, error) {
	var transcript strings.Builder
	var problems []error
	for part := range strings.SplitSeq("\n"+text, "\n$ ") {
		command, want, _ := strings.Cut(part, "\n")
		if strings.TrimSpace(command) == "" {
			continue
		}
		code := "0"
		if before, after, found := strings.Cut(want, "[exit code "); found {
			want, code = before, strings.TrimRight(after, "]\n")
		}
		output, err := p.shell(ctx, command, code)
		if err != nil {
			return "", fmt.Errorf("$ %s: %w", command, err)
		}
		if err := printed(output, want); err != nil {
			problems = append(problems, fmt.Errorf("$ %s: %w", command, err))
		}
		fmt.Fprintf(&transcript, "$ %s\n%s", command, output)
		if code != "0" {
			fmt.Fprintf(&transcript, "[exit code %s]\n", code)
		}
	}
	return transcript.String(), errors.Join(problems...)
}

// kept makes a shell begin where the last one ended: its folder and its exported variables.
const kept = `set -euo pipefail
[ -f "$PAGE_STATE" ] && source "$PAGE_STATE"
trap '{ declare -px | grep -v "PAGE_STATE"; printf "cd %q\n" "$PWD"; } > "$PAGE_STATE"' EXIT
source "$FIXTURES"
`

// shell runs commands, wants an exit code, and returns what they printed.
func (p *reader) shell(ctx context.Context, script, code string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, blockTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, "bash", "-c", kept+p.names.Replace(script))
	command.Dir, command.Env = p.home, p.environment()
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.WaitDelay = 5 * time.Second
	output, err := command.CombinedOutput()
	got := 0
	var ended *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("not done after %s:\n%s\n%s", blockTimeout, script, output)
	case errors.As(err, &ended):
		got = ended.ExitCode()
	case err != nil:
		return "", err
	}
	if strconv.Itoa(got) != code {
		return "", fmt.Errorf("exit code %d, want %s:\n%s\n%s", got, code, script, output)
	}
	return p.back.Replace(string(output)), nil
}

// environment is that of a user with a home directory of their own, who trusts the servers of the examples.
func (p *reader) environment() []string {
	return append(os.Environ(),
		"HOME="+p.home, "PAGE_STATE="+p.home+".state", "KUBECONFIG="+p.file("kubeconfig"), "NO_COLOR=1",
		"PATH="+p.dir+":"+p.cp.BinDir()+":"+os.Getenv("PATH"), "SSL_CERT_FILE="+p.authority, "GIT_SSL_CAINFO="+p.authority,
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.org", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.org",
		"REPOSITORY="+installation.Root(), "FIXTURES="+filepath.Join(installation.Root(), "tests", "docs", "fixtures.sh"),
		"BUNDLES="+p.file("bundles"), "PASSWORD=secret", "TOKEN=secret", "GIT_HOST="+p.open.URL, "REGISTRY_HOST="+p.open.Listener.Addr().String(),
	)
}
