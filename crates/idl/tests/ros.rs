//! Interfaces of ROS 2: they are those of the IDL that says the same, and errors have places.

use plainsong_idl::{Backend, Compilation, Compiler, Diagnostics, Idl, Memory, Model, Options, Rust};

fn compile(files: &Memory, path: &str) -> Compilation {
    Compiler::new().include("share").compile_from(files, &[path])
}

fn messages() -> Memory {
    Memory::new()
        .with("share/builtin_interfaces/msg/Time.msg", "int32 sec\nuint32 nanosec\n")
        .with("share/unique_identifier_msgs/msg/UUID.msg", "uint8[16] uuid\n")
        .with(
            "share/std_msgs/msg/Header.msg",
            "# Two-integer timestamp.\n\nbuiltin_interfaces/Time stamp\nstring frame_id\n",
        )
        .with("lab/msg/Inner.msg", "float64 x\n")
}

const OTHERS: &str = r#"
module builtin_interfaces { module msg {
    @final @dds_name("builtin_interfaces::msg::dds_::Time_") struct Time { long sec; unsigned long nanosec; };
}; };
"#;

fn assert_same(files: &Memory, path: &str, idl: &str) {
    let files = files.clone().with("a.idl", idl);
    let (found, expected) = (compile(&files, path), compile(&files, "a.idl"));
    let expected = expected.model.as_ref().unwrap_or_else(|| panic!("{}", expected.render()));
    let model = found.model.as_ref().unwrap_or_else(|| panic!("{}", found.render()));
    assert!(model == expected, "{}\n{}", idl_of(model), idl_of(expected));
}

fn idl_of(model: &Model) -> String {
    let files = Idl.generate(model, &Options::default(), &mut Diagnostics::default());
    files.into_iter().map(|file| file.text).collect()
}

#[test]
fn a_message_is_what_idl_says() {
    let message = "# A sample of everything.
# It goes on.

# The header.
std_msgs/Header header
uint8 LOW=0x0f   # fifteen
int8 BELOW = -3
string WHO='it is \"me\"'
bool ON=true
float32 RATIO=1
Inner inner   # beside
lab/Inner[] list
byte[3] octets
char letter
string<=8[<=4] names
wstring wide
int32 count 5
string greeting \"a # b\"
float64[2] pair [1.0, 2.0]
";
    let idl = OTHERS.to_owned()
        + r#"
module std_msgs { module msg {
    @verbatim(language="comment", text="Two-integer timestamp.\n")
    @final @dds_name("std_msgs::msg::dds_::Header_") struct Header { builtin_interfaces::msg::Time stamp; string frame_id; };
}; };
module lab { module msg {
    @final @dds_name("lab::msg::dds_::Inner_") struct Inner { double x; };
    module Sample_Constants {
        @verbatim(language="comment", text="fifteen") const uint8 LOW = 15;
        const int8 BELOW = -3;
        const string WHO = "it is \"me\"";
        const boolean ON = TRUE;
        const float RATIO = 1.0;
    };
    @verbatim(language="comment", text="A sample of everything.\nIt goes on.\n")
    @final @dds_name("lab::msg::dds_::Sample_") struct Sample {
        @verbatim(language="comment", text="The header.\n") std_msgs::msg::Header header;
        @verbatim(language="comment", text="beside") Inner inner;
        sequence<Inner> list;
        octet octets[3];
        uint8 letter;
        sequence<string<8>, 4> names;
        wstring wide;
        @default(5) long count;
        @default("a # b") string greeting;
        double pair[2];
    };
}; };
"#;
    let files = messages().with("lab/msg/Sample.msg", message);
    assert_same(&files, "lab/msg/Sample.msg", &idl);
    let compilation = compile(&files, "lab/msg/Sample.msg");
    assert!(compilation.render().contains("the default of a collection is not kept"));
    let rust = rust(&compilation);
    assert!(rust.contains("name = \"lab::msg::dds_::Sample_\", final"), "{rust}");
    assert!(rust.contains("pub mod lab {") && rust.contains("pub struct Sample {"), "{rust}");
}

fn rust(compilation: &Compilation) -> String {
    let mut diagnostics = Diagnostics::default();
    let model = compilation.model.as_ref().unwrap_or_else(|| panic!("{}", compilation.render()));
    let files = Rust::default().generate(model, &Options::default(), &mut diagnostics);
    assert!(!diagnostics.has_errors(), "{}", diagnostics.render(&compilation.sources));
    files.into_iter().map(|file| file.text).collect()
}

#[test]
fn services_and_actions_have_parts() {
    let files = messages()
        .with("lab/srv/Ask.srv", "int64 a\n---\nbool good\nstring why\n")
        .with("lab/srv/Nothing.srv", "---\n")
        .with("lab/action/Go.action", "int32 order\n---\nint32[] all\n---\nInner at\n");
    assert_same(
        &files,
        "lab/srv/Ask.srv",
        r#"module lab { module srv {
    @final @dds_name("lab::srv::dds_::Ask_Request_") struct Ask_Request { long long a; };
    @final @dds_name("lab::srv::dds_::Ask_Response_") struct Ask_Response { boolean good; string why; };
}; };"#,
    );
    assert_same(
        &files,
        "lab/srv/Nothing.srv",
        r#"module lab { module srv {
    @final @dds_name("lab::srv::dds_::Nothing_Request_") struct Nothing_Request { uint8 structure_needs_at_least_one_member; };
    @final @dds_name("lab::srv::dds_::Nothing_Response_") struct Nothing_Response { uint8 structure_needs_at_least_one_member; };
}; };"#,
    );
    let idl = r#"
module lab { module msg { @final @dds_name("lab::msg::dds_::Inner_") struct Inner { double x; }; }; };
module unique_identifier_msgs { module msg {
    @final @dds_name("unique_identifier_msgs::msg::dds_::UUID_") struct UUID { uint8 uuid[16]; };
}; };"#
        .to_owned()
        + OTHERS
        + r#"
module lab { module action {
    @final @dds_name("lab::action::dds_::Go_Goal_") struct Go_Goal { long order; };
    @final @dds_name("lab::action::dds_::Go_Result_") struct Go_Result { sequence<long> all; };
    @final @dds_name("lab::action::dds_::Go_Feedback_") struct Go_Feedback { lab::msg::Inner at; };
    @final @dds_name("lab::action::dds_::Go_SendGoal_Request_")
    struct Go_SendGoal_Request { unique_identifier_msgs::msg::UUID goal_id; Go_Goal goal; };
    @final @dds_name("lab::action::dds_::Go_SendGoal_Response_")
    struct Go_SendGoal_Response { boolean accepted; builtin_interfaces::msg::Time stamp; };
    @final @dds_name("lab::action::dds_::Go_GetResult_Request_")
    struct Go_GetResult_Request { unique_identifier_msgs::msg::UUID goal_id; };
    @final @dds_name("lab::action::dds_::Go_GetResult_Response_")
    struct Go_GetResult_Response { int8 status; Go_Result result; };
    @final @dds_name("lab::action::dds_::Go_FeedbackMessage_")
    struct Go_FeedbackMessage { unique_identifier_msgs::msg::UUID goal_id; Go_Feedback feedback; };
}; };"#;
    assert_same(&files, "lab/action/Go.action", &idl);
}

#[test]
fn errors_have_place_and_cure() {
    let mut wrong = String::new();
    for (message, expected) in [
        ("int x\n", ":1:1 did you mean `int32`?"),
        ("int32 a\nstrin b\n", ":2:1 did you mean `string`?"),
        ("int32\n", ":1:1 expected the name of a field"),
        ("other/Thing x\n", ":1:1 looked for other/msg/Thing.msg, share/other/msg/Thing.msg"),
        ("A x\n", ":1:1 `lab/A` contains itself"),
        ("int32[0] x\n", ":1:6 \"0\" is no size"),
        ("int32[3 x\n", ":1:6 `]` is missing"),
        ("bool x 3\n", ":1:8 neither true nor false"),
        ("int8 X=1000\n", ":1:8 1000"),
        ("uint8 X=a\n", ":1:9 no number of this type"),
        ("int32[] X=1\n", ":1:1 a constant is a number"),
        ("int32<=3 x\n", ":1:1 `int32` has no bound"),
        ("Inner x 3\n", ":1:9 a field that is a message has no default"),
        ("int32 a\n---\nint32 b\n", ":2:1 a .msg file has 1 parts"),
        ("int32 a\nint32 a\n", ":2:7 there is a member `a` already"),
    ] {
        let compilation = compile(&messages().with("lab/msg/A.msg", message), "lab/msg/A.msg");
        let said = compilation.render();
        let (place, words) = expected.split_once(' ').unwrap();
        assert!(compilation.model.is_none(), "{message} compiles");
        if !(said.contains(&format!("lab/msg/A.msg{place}")) && said.contains(words)) {
            wrong += &format!("{message}: expected {expected}\n{said}\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    let compilation = compile(&Memory::new().with("A.msg", "int32 a\n"), "A.msg");
    assert!(compilation.render().contains("A.msg is in no package"), "{}", compilation.render());
}
