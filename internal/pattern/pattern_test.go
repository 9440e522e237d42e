// SPDX-License-Identifier: Apache-2.0

package pattern

import (
	"errors"
	"regexp/syntax"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// million is an expression of 1,010 characters that compiles to a million instructions.
var million = "(?:" + strings.Repeat("a", 1000) + "){1000}"

func TestCompile(t *testing.T) {
	cases := map[string]struct {
		reason, expr, wrong string
	}{
		"a prefix":        {"the usual case", `web-.*`, ""},
		"names":           {"alternatives", `web|shop|(cart|till)-[a-z0-9]{5,10}`, ""},
		"a label":         {"what a name in Kubernetes looks like, with its counted length", `[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?`, ""},
		"an identity":     {"a workflow at any tag", `^https://github\.com/acme/shop/\.github/workflows/release\.yaml@refs/tags/v[0-9]+(\.[0-9]+){2}$`, ""},
		"long text":       {"each character is one instruction", strings.Repeat("a", MaxLength), ""},
		"letters":         {"classes of Unicode have their use", `(?i)\p{Greek}[\pL-]*münchen`, ""},
		"a million":       {"compiling it takes 120 MB", million, "1000002 instructions"},
		"M27":             {"8,000 optional characters, for each of which the matcher keeps a state", "(" + strings.Repeat("[a-z0-9]?", 8) + "){1000}Z", "instructions"},
		"open end":        {"{n,} writes out n as well", "(?:" + strings.Repeat("a", 100) + "){500,}", "instructions"},
		"long":            {"the length bounds what parsing takes", strings.Repeat("a", MaxLength+1), "1025 bytes"},
		"classes":         {"parsing takes 25 ms and 10 MB", strings.Repeat(`\pL|`, 255), "classes of Unicode"},
		"folded ranges":   {"parsing takes 800 ms", "(?i)[" + strings.Repeat("A-\U0001e900", 169) + "]", "classes of Unicode"},
		"folded by flags": {"other flags may stand before", "(?mi)[" + strings.Repeat(`\x{41}-\x{1e900}`, 60) + "]", "classes of Unicode"},
		"unclosed":        {"what is wrong is said, with little of the expression", "(" + strings.Repeat("a", 500), "missing closing )"},
		"nested counts":   {"the library refuses these itself", `(a{1000}){1000}`, "invalid repeat count"},
		"ends the group":  {"the expression is judged by itself", `a)|(?:b`, "unexpected )"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for what, compile := range map[string]func(string, *Budget) (*Pattern, error){"any part": Compile, "whole": CompileWhole} {
				p, err := compile(tc.expr, NewBudget())
				if (err == nil) != (tc.wrong == "") || err != nil && !strings.Contains(err.Error(), tc.wrong) {
					t.Fatalf("%s, %s: got %v, want %q", tc.reason, what, err, tc.wrong)
				}
				var problem *Error
				if err != nil && (!errors.As(err, &problem) || len(err.Error()) > 350) {
					t.Errorf("%s: %T of %d bytes: %v", what, err, len(err.Error()), err)
				}
				if err == nil && p.String() != tc.expr {
					t.Errorf("%s: it calls itself %q", what, p)
				}
			}
		})
	}
}

func TestMatching(t *testing.T) {
	cases := map[string]struct {
		expr, text  string
		part, whole bool
	}{
		"equal":          {"web", "web", true, true},
		"longer":         {"web", "web-1", true, false},
		"a dot":          {"w.b", "web", true, true},
		"alternatives":   {"web|shop", "shopping", true, false},
		"lines":          {"(?m)^web$", "web\nshop", true, false},
		"newline at end": {"web.?", "web\n", true, false},
		"nothing":        {"", "web", true, false},
		"nothing at all": {"", "", true, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			budget := NewBudget()
			part, err := Compile(tc.expr, budget)
			if err != nil {
				t.Fatal(err)
			}
			whole, err := CompileWhole(tc.expr, budget)
			if err != nil {
				t.Fatal(err)
			}
			for p, want := range map[*Pattern]bool{part: tc.part, whole: tc.whole} {
				if charged, err := budget.Match(p, tc.text); p.MatchString(tc.text) != want || charged != want || err != nil {
					t.Errorf("%q in %q: %t, and %t with %v, want %t", p, tc.text, p.MatchString(tc.text), charged, err, want)
				}
			}
		})
	}
}

// TestM32CostOfRefusal: 32 patterns of 1,010 characters in one object took 3.25 GB.
func TestM32CostOfRefusal(t *testing.T) {
	for name, expr := range map[string]string{
		"a million instructions": million, "classes": strings.Repeat(`\pL|`, 31), "folded ranges": "(?i)[A-\U0001e900c]",
		"optional": "(?:a?){1000}Z", "a set": "[" + strings.Repeat(`\pL`, 31) + "]",
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := time.Now()
			budget, refused := NewBudget(), 0
			var kept []*Pattern
			for range 32 {
				if p, err := Compile(expr, budget); err != nil {
					refused++
				} else {
					kept = append(kept, p)
				}
			}
			took := time.Since(began)
			runtime.GC()
			runtime.ReadMemStats(&after)
			if held := int64(after.HeapAlloc) - int64(before.HeapAlloc); held > 20<<20 || took > 6*time.Second || refused == 0 {
				t.Errorf("%d refused in %v, and %d MiB are held", refused, took, held>>20)
			}
			runtime.KeepAlive(kept)
			t.Logf("%d of 32 refused in %v, %d kB allocated", refused, took, (after.TotalAlloc-before.TotalAlloc)>>10)
		})
	}
}

// TestM27BudgetOfMatching: what matching takes is bounded for all texts together.
func TestM27BudgetOfMatching(t *testing.T) {
	budget := NewBudget()
	p, err := CompileWhole("(?:"+strings.Repeat("[a-z0-9]?", 8)+"){120}Z", budget)
	if err != nil {
		t.Fatal(err)
	}
	literal, err := CompileWhole("web", budget)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("a", 253)
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for range 25_000 {
				if _, err := budget.Match(p, text); err != nil {
					return
				}
			}
			t.Error("25,000 texts were matched with 2,000 instructions")
		})
	}
	wait.Wait()
	if _, err := budget.Match(literal, text); err != nil {
		t.Errorf("a comparison costs nothing, but: %v", err)
	}
	if _, err := Compile("a", budget); err != nil {
		t.Errorf("what matching costs is not taken from what compiling may: %v", err)
	}
}

// FuzzProgramSize: the estimate is never below the program, and bounds the parsing.
func FuzzProgramSize(f *testing.F) {
	for _, expr := range []string{
		`web-.*`, `a{3,5}`, `(?:a|b)*?`, `(x{2}){3,}`, `\pL+`, `(?i)k`, `a{0}`, `(|a)+`, `(?:){5}`, `[^\x00-\x{10FFFF}]`, `^a$|^b$`, `(a?){30}b`,
		`(?:(?:a*)*)*`, `x{0,3}y{2,2}z{1,}`, `^*`, `(?s).`, `\b\B`, `(?m)^$`, "(?i)[A-\U0001e900]",
	} {
		f.Add(expr)
	}
	f.Fuzz(func(t *testing.T, expr string) {
		began := time.Now()
		defer func() {
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("%q takes %v", expr, took)
			}
		}()
		parsed, cost, err := parse(expr)
		if err != nil || cost > MaxSize {
			return
		}
		estimate := programSize(parsed)
		if estimate > 16*MaxSize {
			return
		}
		program, err := syntax.Compile(parsed.Simplify())
		if err != nil {
			t.Fatal(err)
		}
		if actual := int64(len(program.Inst)); estimate < actual {
			t.Errorf("%q compiles to %d instructions, the estimate is %d", expr, actual, estimate)
		}
	})
}
