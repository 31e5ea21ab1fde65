//! The vocabulary of the conversations: twelve fields, each with its words, source files and commands.

/// The words, file names and commands of a field.
#[derive(Debug)]
pub struct Theme {
    pub name: &'static str,
    pub source_folder: &'static str,
    pub extension: &'static str,
    pub comment_prefix: &'static str,
    pub test_command: &'static str,
    pub build_command: &'static str,
    pub format_command: &'static str,
    /// Words, separated by spaces, as are the verbs and the qualities.
    pub nouns: &'static str,
    pub verbs: &'static str,
    pub qualities: &'static str,
}

pub const THEMES: [Theme; 12] = [
    Theme {
        name: "ledger",
        source_folder: "src",
        extension: "rs",
        comment_prefix: "//",
        test_command: "cargo test --lib",
        build_command: "cargo check -p",
        format_command: "cargo fmt",
        nouns: "ledger posting voucher balance journal remittance invoice creditor tariff rebate surcharge \
                treasury dividend audit currency escrow mandate payout settlement annuity",
        verbs: "reconcile post accrue amortize round convert split settle carry void",
        qualities: "overdue fiscal gross net quarterly pending foreign taxable deferred prepaid",
    },
    Theme {
        name: "weather",
        source_folder: "station",
        extension: "py",
        comment_prefix: "#",
        test_command: "python -m pytest -q -k",
        build_command: "python -m compileall",
        format_command: "ruff format .",
        nouns: "barometer gust humidity rainfall anemometer dewpoint forecast cyclone isobar hailstone \
                visibility radiosonde front drizzle thermograph cloudbase squall pressure sunshine snowpack",
        verbs: "sample smooth calibrate interpolate resample bin mask regrid clip infer",
        qualities: "hourly coastal humid stationary mesoscale gusty arid synoptic polar missing",
    },
    Theme {
        name: "railway",
        source_folder: "packages/core",
        extension: "ts",
        comment_prefix: "//",
        test_command: "npx vitest run",
        build_command: "npx tsc --noEmit -p",
        format_command: "npx prettier --write .",
        nouns: "timetable platform locomotive siding junction conductor carriage signal gradient shunt \
                viaduct dispatch turnstile coupling buffer headway depot crossing pantograph ticket",
        verbs: "dispatch shunt couple delay reroute board divert cancel merge announce",
        qualities: "express regional delayed electrified freight nightly northbound single reserved suspended",
    },
    Theme {
        name: "brewery",
        source_folder: "internal/brew",
        extension: "go",
        comment_prefix: "//",
        test_command: "go test ./... -run",
        build_command: "go vet",
        format_command: "gofmt -w .",
        nouns: "mash wort kettle fermenter hops yeast malt sparge keg lauter gravity attenuation trub krausen \
                adjunct carbonation manifold glycol racking tannin",
        verbs: "ferment sparge boil pitch rack carbonate chill rinse purge blend",
        qualities: "bitter lagered cloudy hopped roasted sour warm filtered turbid stale",
    },
    Theme {
        name: "archive",
        source_folder: "lib/archive",
        extension: "rb",
        comment_prefix: "#",
        test_command: "bundle exec rspec -e",
        build_command: "ruby -c",
        format_command: "bundle exec rubocop -A",
        nouns: "manuscript folio parchment catalogue provenance codex vellum accession curator engraving \
                marginalia palimpsest reliquary exhibit vitrine restoration scribe bequest herbarium seal",
        verbs: "catalogue digitize transcribe restore lend appraise index date bind scan",
        qualities: "medieval fragile gilded foxed unsigned bound faded illuminated looted rare",
    },
    Theme {
        name: "hospital",
        source_folder: "src/main/java/ward",
        extension: "java",
        comment_prefix: "//",
        test_command: "mvn -q test -Dtest",
        build_command: "mvn -q compile -pl",
        format_command: "mvn -q spotless:apply",
        nouns: "roster ward triage dosage infusion surgeon allergy discharge bedside monitor vaccine referral \
                syringe pulse anesthesia prescription biopsy stretcher handover caseload",
        verbs: "admit discharge triage swap escalate prescribe rotate page chart transfer",
        qualities: "acute ambulatory sterile overnight chronic pediatric urgent elective isolated stable",
    },
    Theme {
        name: "satellite",
        source_folder: "flight/src",
        extension: "cpp",
        comment_prefix: "//",
        test_command: "ctest --output-on-failure -R",
        build_command: "cmake --build build --target",
        format_command: "clang-format -i flight/src/*",
        nouns: "telemetry transponder gyroscope downlink ephemeris thruster payload attitude apogee beacon \
                magnetorquer antenna eclipse watchdog propellant reaction uplink solar startracker quaternion",
        verbs: "deorbit detumble downlink slew calibrate latch decode throttle arm reset",
        qualities: "nominal redundant inertial stale geodetic saturated cold spinning eclipsed armed",
    },
    Theme {
        name: "choir",
        source_folder: "app/src/main/kotlin",
        extension: "kt",
        comment_prefix: "//",
        test_command: "./gradlew test --tests",
        build_command: "./gradlew compileKotlin -p",
        format_command: "./gradlew ktlintFormat",
        nouns: "soprano cantata libretto rehearsal tempo stanza cadence organist hymnal fermata motet descant \
                baritone chorale metronome clef antiphon vibrato encore tuning",
        verbs: "transpose rehearse annotate transcribe cue tune layer repeat print align",
        qualities: "sacred sharp flat unison staccato baroque hushed syncopated solo modal",
    },
    Theme {
        name: "greenhouse",
        source_folder: "lib/greenhouse",
        extension: "ex",
        comment_prefix: "#",
        test_command: "mix test --only",
        build_command: "mix compile --force",
        format_command: "mix format",
        nouns: "irrigation seedling trellis compost sprinkler aphid mulch nutrient lattice propagation \
                humidifier valve substrate pollinator cutting rootstock shade vent perlite harvest",
        verbs: "irrigate prune germinate graft ventilate fertilize shade repot mist dose",
        qualities: "drought leafy acidic potted dormant wilted organic perennial damp ripe",
    },
    Theme {
        name: "auction",
        source_folder: "src/Auction",
        extension: "php",
        comment_prefix: "//",
        test_command: "vendor/bin/phpunit --filter",
        build_command: "php -l",
        format_command: "vendor/bin/pint",
        nouns: "bidder lot hammer reserve paddle consignor estimate increment gavel appraisal premium catalog \
                proxy heirloom dealer viewing shipment deposit absentee saleroom",
        verbs: "bid withdraw appraise hammer consign outbid invoice relist verify extend",
        qualities: "sealed anonymous unsold starting timed minimum disputed winning insured late",
    },
    Theme {
        name: "chess",
        source_folder: "engine",
        extension: "zig",
        comment_prefix: "//",
        test_command: "zig build test --",
        build_command: "zig build",
        format_command: "zig fmt .",
        nouns: "bishop endgame gambit castling transposition quiescence zobrist tablebase pawn zugzwang tempo \
                bitboard sacrifice stalemate opening knight aspiration blunder clock perft",
        verbs: "prune hash search evaluate castle promote probe extend reduce mate",
        qualities: "passed pinned isolated doubled quiet forced drawn hanging tactical late",
    },
    Theme {
        name: "seismology",
        source_folder: "Sources/Quake",
        extension: "swift",
        comment_prefix: "//",
        test_command: "swift test --filter",
        build_command: "swift build --target",
        format_command: "swift format -i -r Sources",
        nouns: "tremor epicenter geophone aftershock magnitude faultline waveform accelerogram hypocenter \
                subduction liquefaction seismograph rupture foreshock moment traveltime plate borehole \
                intensity attenuator",
        verbs: "detrend associate locate trigger invert filter stack pick relocate window",
        qualities: "shallow tectonic noisy broadband clipped teleseismic vertical induced deep aligned",
    },
];
