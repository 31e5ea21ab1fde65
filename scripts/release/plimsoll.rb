class Plimsoll < Formula
  desc "Load line for Claude Code: warns, checkpoints and resumes before context overflows"
  homepage "@REPOSITORY@"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]

@TARGETS@
  def install
    bin.install Dir["bin/*"]
    bash_completion.install "completions/plimsoll.bash" => "plimsoll"
    zsh_completion.install "completions/_plimsoll"
    fish_completion.install "completions/plimsoll.fish"
    man1.install Dir["man/man1/*"]
  end

  def caveats
    <<~TEXT
      Set up the hooks with `plimsoll init`, and remove them with `plimsoll uninstall` before you uninstall the formula.
    TEXT
  end

  test do
    assert_match "plimsoll #{version}", shell_output("#{bin}/plimsoll --version")
    assert_match version.to_s, shell_output("#{bin}/plimsoll-post-tool version")
  end
end
